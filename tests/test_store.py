"""The store of paid answers: one file per writer, read together, safe against kill -9."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from data.command import InputError
from data.jsonl import JsonlError
from data.store import Store

KEY = Store.key(model="judge", messages=[{"role": "user", "content": "기각인가"}])


def test_what_is_put_is_there_at_once_and_after_opening_again(tmp_path):
    with Store(tmp_path / "verdicts") as store:
        assert store.get(KEY) is None
        store.put(KEY, {"verdict": "기각"})
        assert store.get(KEY) == {"verdict": "기각"}
    assert Store(tmp_path / "verdicts").get(KEY) == {"verdict": "기각"}
    assert len(Store(tmp_path / "verdicts")) == 1


def test_a_key_is_its_parts_whatever_their_order():
    assert Store.key(a="가", b=[1, {"x": 0.0, "y": None}]) == Store.key(b=[1, {"y": None, "x": 0.0}], a="가")
    assert len({Store.key(a="1"), Store.key(a=1), Store.key(b="1"), Store.key(a=["1"]), Store.key()}) == 5
    assert len(Store.key(a="\ud800")) == 64


def test_a_reader_leaves_no_file_and_no_folder(tmp_path):
    with Store(tmp_path / "verdicts") as store:
        store.get(KEY)
        store.refresh()
    assert list(tmp_path.iterdir()) == []


def test_each_writer_has_its_own_file_and_sees_the_others_after_a_refresh(tmp_path):
    with Store(tmp_path) as one, Store(tmp_path) as other:
        one.put("a", {"n": 1})
        other.put("b", {"n": 2})
        assert len(list(tmp_path.iterdir())) == 2
        assert one.get("b") is None
        one.refresh()
        other.refresh()
        assert one.get("b") == {"n": 2}
        one.put("c", {"n": 3})
        other.refresh()
        assert other.get("c") == {"n": 3}


def test_a_key_that_has_an_answer_keeps_it(tmp_path):
    with Store(tmp_path) as store:
        store.put("a", {"n": 1})
        store.put("a", {"n": 2})
    assert Store(tmp_path).get("a") == {"n": 1}
    [path] = tmp_path.iterdir()
    assert path.read_text(encoding="utf-8").count("\n") == 1


def test_a_forked_child_writes_a_file_of_its_own(tmp_path):
    with Store(tmp_path) as store:
        store.put("parent", {"n": 1})
        child = os.fork()
        if child == 0:
            store.put("child", {"n": 2})
            store.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        store.put("parent again", {"n": 3})
    assert len(list(tmp_path.iterdir())) == 2
    assert len(Store(tmp_path)) == 3


def test_an_interrupted_last_line_is_as_if_never_written(tmp_path):
    with Store(tmp_path) as store:
        store.put("a", {"n": 1})
        store.put("b", {"n": 2})
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    again = Store(tmp_path)
    assert (again.get("a"), again.get("b")) == ({"n": 1}, None)


@pytest.mark.parametrize("line", ['{"doc_id": "a"}\n', '{"key": "a", "value": \n', '{"key": "a"}\n'])
def test_a_damaged_file_is_named_with_its_line(tmp_path, line):
    (tmp_path / "host-1-00.jsonl").write_text('{"key": "a", "value": {}}\n' + line, encoding="utf-8")
    with pytest.raises(JsonlError, match=r"host-1-00\.jsonl, line 2"):
        Store(tmp_path)


def test_a_store_where_no_folder_can_be_is_refused_before_anything_is_paid(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match=r"the store of answers must be a folder, and .*taken is a file"):
        Store(tmp_path / "taken")
    with pytest.raises(InputError, match=r"taken/verdicts would lie in .*taken, which is a file"):
        Store(tmp_path / "taken" / "verdicts")


def test_a_store_in_a_folder_that_may_not_be_written_to_is_refused_too(tmp_path):
    tmp_path.chmod(0o500)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(InputError, match="which may not be written to"):
        Store(tmp_path / "verdicts")


def test_kill_minus_nine_loses_nothing_that_was_put(tmp_path):
    script = textwrap.dedent(
        """
        import sys
        from data.store import Store

        store = Store(sys.argv[1])
        for n in range(1_000_000):
            store.put(f"key-{n}", {"n": n, "text": "기각" * 200})
            print(n, flush=True)
        """
    )
    writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    for line in writer.stdout:
        if int(line) >= 200:
            break
    writer.send_signal(signal.SIGKILL)
    told = [int(line) for line in writer.stdout.read().split("\n")[:-1]]
    writer.wait()
    store = Store(tmp_path)
    last = max([200, *told])
    assert all(store.get(f"key-{n}")["n"] == n for n in range(last + 1))
