"""Make the projection of an embedder's token vectors: 64 of their dimensions.

    python benchmarks/token_projection.py
    python benchmarks/token_projection.py minilm-tokens

The dimensions are the main ones (PCA) of the pieces of made-up small talk around their mean, in all
languages that the model of the tokens knows: for the default embedder English and Chinese in equal
parts, for the MiniLM English. The file is written into the package, and with another file the token
vectors of a store are in another space: then the embedder's `token_space` must change.
"""

from typing import Annotated

import numpy as np
import smalltalk
import typer

from commonplace.models import minilm, sentence_encoder
from commonplace.models.sentence_encoder import SentenceEncoder


def default_vectors(texts: list[str]) -> np.ndarray:
    """Encode texts with the default embedder; one row of 512 numbers for each of their pieces."""
    backend = sentence_encoder.TokenBackend()
    rows = []
    for encoded in backend.encode_pieces(texts):
        first = 0
        for length in encoded.lengths:
            rows.append(encoded.features[first + 1 : first + length - 1])
            first += length
    return np.concatenate(rows) @ backend.model.cnn_W + backend.model.cnn_b


def minilm_vectors(texts: list[str]) -> np.ndarray:
    """Encode texts with the MiniLM; one row of 384 numbers for each of their pieces."""
    backend = minilm.MiniLMBackend()
    return np.concatenate([backend.encode_pieces(text)[1] for text in texts])


EMBEDDERS = {
    "default": (
        default_vectors,
        (smalltalk.ENGLISH, smalltalk.CHINESE),
        sentence_encoder.PROJECTION,
    ),
    "minilm-tokens": (minilm_vectors, (smalltalk.ENGLISH,), minilm.PROJECTION),
}


def main(
    embedder: Annotated[str, typer.Argument(help="default or minilm-tokens.")] = "default",
    turns: Annotated[int, typer.Option(help="Made-up turns of each language.")] = 3000,
) -> None:
    """Write the projection, and print how much of the squared lengths it keeps."""
    encode, languages, path = EMBEDDERS[embedder]
    texts = [smalltalk.turn(number, parts) for parts in languages for number in range(turns)]
    vectors = encode(texts)
    mean = vectors.mean(axis=0)
    unit = vectors - mean
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    squares, directions = np.linalg.eigh(unit.T @ unit)
    size = SentenceEncoder.token_dimensions
    kept = directions[:, ::-1][:, :size]
    np.save(str(path), np.vstack([kept, mean @ kept]).astype(np.float16))
    share = squares[::-1][:size].sum() / squares.sum()
    print(f"{len(vectors)} pieces; {size} dimensions keep {share:.1%} of them: {path}")


if __name__ == "__main__":
    typer.run(main)
