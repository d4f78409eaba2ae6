"""Citations of Korean law under one name each, however a text writes them. Pure.

A statute counts by its article: "민법 제548조 제1항 본문" is 민법 제548조. An act as it stood before an amendment
("구 …법") is another law than the act in force, whichever amendment it was. A precedent counts by court and first case
number.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from data.legal_marks import find_citations
from data.page_text import fold

LawKind = Literal["statute", "precedent"]

_COURT = r"대법원|헌법재판소|[가-힣]{2,8}법원(?: ?[가-힣]{2,4}지원)?"
_DATE = r"(?P<year>\d{4})\. ?(?P<month>\d{1,2})\. ?(?P<day>\d{1,2})\.? ?(?P<verb>자|선고) ?"
_NUMBER = r"(?P<number>\d{2,4}(?![년월일원호조항회명])[가-힣]{1,3}\d+)"
_PRECEDENT = re.compile(
    rf"(?:(?P<court>{_COURT}) ?(?:{_DATE})?|(?:{_DATE.replace('?P<', '?P<bare_')})){_NUMBER}"
    r"(?: ?(?:,|·|및) ?(?:\d{2,4}[가-힣]{1,3})?\d+(?!\. ?\d))*(?: ?\([가-힣]+\))?(?: ?전원합의체)?"
    r" ?(?P<form>판결|결정)?"
)
_ARTICLE = re.compile(r"제 ?(\d+)조(?:의 ?(\d+))?")
_RESOLVED = re.compile(
    # the same act as before, or further clauses of an article
    r"(?<![가-힣])(?:같은|동|위) ?(?P<what>법률|법|시행령|시행규칙)(?=(?: 시행령| 시행규칙)? ?(?:제 ?\d|\())"
    r"|(?:(?:, ?| 및 |[와과] ?)제 ?\d+[항호](?: ?제 ?\d+호)?(?: ?[가-하]목)?(?: ?(?:본문|단서|전문|후문))?)+"
)
_DECREE = re.compile(r" ?(시행령|시행규칙)$")
_COMMUNE = re.compile(r"[가-힣]+(?:특별시|광역시|시|도|군|구) ?(?:[가-힣·]+ ){0,4}$")  # whose ordinance it is

# Names of several words, none of them "관한", of which a reader of single words sees only the last; without blanks.
_SPACED = (
    "상가건물임대차보호법", "주택임대차보호법", "자동차손해배상보장법", "도시및주거환경정비법", "근로자퇴직급여보장법",
    "화물자동차운수사업법", "여객자동차운수사업법", "공유재산및물품관리법", "민간임대주택특별법", "공공주택특별법",
    "산업재해보상보험법", "개인정보보호법", "이자제한법",
)  # fmt: skip
_SHORT = {
    "상가임대차법": "상가건물임대차보호법",
    "주택임대차법": "주택임대차보호법",
    "자동차손배법": "자동차손해배상보장법",
    "도시정비법": "도시및주거환경정비법",
    "퇴직급여법": "근로자퇴직급여보장법",
    "산재보험법": "산업재해보상보험법",
    "소송촉진법": "소송촉진등에관한특례법",
    "소촉법": "소송촉진등에관한특례법",
    "집합건물법": "집합건물의소유및관리에관한법률",
    "약관법": "약관의규제에관한법률",
    "약관규제법": "약관의규제에관한법률",
    "공정거래법": "독점규제및공정거래에관한법률",
    "하도급법": "하도급거래공정화에관한법률",
    "국토계획법": "국토의계획및이용에관한법률",
    "정보공개법": "공공기관의정보공개에관한법률",
    "토지보상법": "공익사업을위한토지등의취득및보상에관한법률",
    "부동산실명법": "부동산실권리자명의등기에관한법률",
    "채무자회생법": "채무자회생및파산에관한법률",
    "남녀고용평등법": "남녀고용평등과일·가정양립지원에관한법률",
    "기간제법": "기간제및단시간근로자보호등에관한법률",
    "파견법": "파견근로자보호등에관한법률",
    "노동조합법": "노동조합및노동관계조정법",
    "부정경쟁방지법": "부정경쟁방지및영업비밀보호에관한법률",
}


@dataclass(frozen=True, slots=True)
class Law:
    """A law that a text names at `[start:end]` of its `tidy` form.

    `key` is the same for every way to write it, `citation` is a way to print it.
    """

    kind: LawKind
    key: str
    citation: str
    start: int
    end: int


def tidy(text: str) -> str:
    """The text in which laws are looked for: NFC, plain digits and Hangul, single blanks."""
    text = re.sub(r"\s+", " ", fold(unicodedata.normalize("NFC", text)))
    return re.sub(r"제 ?(\d+) ?조", r"제\1조", text)


def find_laws(text: str) -> tuple[Law, ...]:
    """Every law that a text names, in its order, as often as it does.

    >>> [law.key for law in find_laws("민법 제213조, 제214조(대법원 1993.5.25. 선고 92다51280 판결 등 참조)")]
    ['민법 제213조', '민법 제214조', '대법원 92다51280']
    """
    text = tidy(text)
    found = [*_precedents(text), *_statutes(text)]
    return tuple(sorted(found, key=lambda law: law.start))


def leading_laws(text: str) -> tuple[Law, ...]:
    """The laws that a passage states: the precedents that it refers to, or else the statutes that it begins with.

    A statute that is only mentioned further on is none of them; a principle that the passage states of itself has none.

    >>> [law.key for law in leading_laws("민법 제654조, 제615조: 임차인은 민법 제390조와 달리 원상에 회복하여야 한다.")]
    ['민법 제654조', '민법 제615조']
    """
    laws = find_laws(text)
    precedents = tuple(law for law in laws if law.kind == "precedent")
    if precedents:
        return precedents
    stated: list[Law] = []
    end = 0
    for law in laws:
        if not re.fullmatch(r"\W*(?:및|와|과|내지)?\W*", tidy(text)[end : law.start].replace(":", "가")):
            break
        stated.append(law)
        end = law.end
    return tuple(stated)


def key_of(citation: str) -> str:
    """The key of the law that a citation names; of one of another form, itself without blanks.

    >>> key_of("구 소득세법(2015. 7. 24. 법률 제13426호로 개정되기 전의 것) 제95조 제1항"), key_of("고시 7")
    ('구 소득세법 제95조', '고시7')
    """
    laws = find_laws(citation)
    return laws[0].key if laws else tidy(citation).replace(" ", "")


def _precedents(text: str) -> Iterator[Law]:
    court = ""
    for match in _PRECEDENT.finditer(text):
        court = (match["court"] or court).replace(" ", "")
        if not court:
            continue  # a date and a number, and no court before them
        part = match.groupdict()
        bare = "" if part["court"] else "bare_"
        dated = ""
        if part[f"{bare}year"]:
            dated = "{}. {}. {}. {} ".format(*(part[bare + name] for name in ("year", "month", "day", "verb")))
        citation = f"{court} {dated}{match['number']} {match['form'] or ''}".strip()
        yield Law("precedent", f"{court} {match['number']}", citation, *match.span())


def _statutes(text: str) -> Iterator[Law]:
    """The statutes of a tidy text, "같은 법" taken for the act before it."""
    pieces: list[str] = []
    places: list[int] = []  # of every character of the resolved text in the tidy one
    at = 0
    for match in _RESOLVED.finditer(text):
        name = ""
        if match["what"]:
            before = find_citations("".join(pieces) + text[at : match.start()])
            acts = [citation.source for citation in before if citation.kind == "law"]
            if not acts:
                continue
            act = _DECREE.sub("", acts[-1])
            name = act if match["what"] in ("법", "법률") else f"{act} {match['what']}"
        pieces += [text[at : match.start()], name]
        places += [*range(at, match.start()), *[match.start()] * len(name)]
        at = match.end()
    resolved = "".join([*pieces, text[at:]])
    places += range(at, len(text) + 1)
    names: dict[str, str] = {}  # the last word of a name -> all of it, for the articles that are listed after it
    for citation in find_citations(resolved):
        if citation.kind != "law":
            continue
        start = citation.start
        if _ARTICLE.match(citation.text):
            name = names.get(citation.source, citation.source)
        else:
            name, start = _whole_name(resolved, start, citation.source)
            names[citation.source] = name
        number, branch = _ARTICLE.findall(citation.text)[-1]
        place = f"제{number}조" + (f"의{branch}" if branch else "")
        yield Law("statute", f"{_key(name)} {place}", f"{name} {place}", places[start], places[citation.end])


def _whole_name(text: str, start: int, source: str) -> tuple[str, int]:
    """The statute's name with the words before it that belong to it, and where they begin."""
    squeezed = source.replace(" ", "")
    base = _DECREE.sub("", squeezed)
    head = text[max(0, start - 40) : start]
    if source.endswith(("조례", "규칙")) and not squeezed.endswith("시행규칙"):
        match = _COMMUNE.search(head)
        return (head[match.start() :] + source, start - len(head) + match.start()) if match else (source, start)
    for name in _SPACED:
        missing = name.removesuffix(base)
        if missing in ("", name):
            continue
        if match := re.search(r"(?:(?<![가-힣])구 )?" + " ?".join(missing) + " $", head):
            return head[match.start() :] + source, start - len(head) + match.start()
    return source, start


def _key(name: str) -> str:
    former = re.match(r"구 ", name)
    squeezed = re.sub(r"[\s「」]", "", name[former.end() :] if former else name)
    decree = _DECREE.search(squeezed)
    base = squeezed[: decree.start()] if decree else squeezed
    return f"{'구 ' if former else ''}{_SHORT.get(base, base)}{decree[1] if decree else ''}"
