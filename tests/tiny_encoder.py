"""An embedding model of a few thousand parameters that knows the characters it is given."""

from collections.abc import Sequence
from pathlib import Path


def write_encoder(folder: Path, texts: Sequence[str]) -> str:
    """An untrained sentence-transformers model in the folder; equal texts have equal vectors. Returns its path."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = {word: place for place, word in enumerate(["[PAD]", "[UNK]", *sorted({c for text in texts for c in text})])}
    signs = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=signs["unk_token"]))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    raw = folder / "raw"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **signs).save_pretrained(raw)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(words), **shape)).save_pretrained(raw)
    SentenceTransformer(modules=[Transformer(str(raw)), Pooling(16)], device="cpu").save(str(folder / "encoder"))
    return str(folder / "encoder")
