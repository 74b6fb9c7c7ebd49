"""Make the projection of the default embedder's token vectors: 64 of their 512 dimensions.

    python benchmarks/token_projection.py

The dimensions are the main ones (PCA) of the pieces of made-up small talk, English and Chinese in
equal parts, around their mean. The file is written into the package, and with another file the
token vectors of a store are in another space: then `SentenceEncoder.token_space` must change.
"""

from typing import Annotated

import numpy as np
import smalltalk
import typer

from commonplace.models.sentence_encoder import SentenceEncoder
from commonplace.models.token_backend import PROJECTION, TokenBackend


def piece_vectors(backend: TokenBackend, turns: int) -> np.ndarray:
    """Encode made-up turns of each language; one row of 512 numbers for each of their pieces."""
    texts = [
        smalltalk.turn(number, parts)
        for parts in (smalltalk.ENGLISH, smalltalk.CHINESE)
        for number in range(turns)
    ]
    rows = []
    for encoded in backend.encode_pieces(texts):
        first = 0
        for length in encoded.lengths:
            rows.append(encoded.features[first + 1 : first + length - 1])
            first += length
    return np.concatenate(rows) @ backend.cnn_W + backend.cnn_b


def main(
    turns: Annotated[int, typer.Option(help="Made-up turns of each language.")] = 3000,
) -> None:
    """Write the projection, and print how much of the squared lengths it keeps."""
    vectors = piece_vectors(TokenBackend(), turns)
    mean = vectors.mean(axis=0)
    unit = vectors - mean
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    squares, directions = np.linalg.eigh(unit.T @ unit)
    size = SentenceEncoder.token_dimensions
    kept = directions[:, ::-1][:, :size]
    np.save(str(PROJECTION), np.vstack([kept, mean @ kept]).astype(np.float16))
    share = squares[::-1][:size].sum() / squares.sum()
    print(f"{len(vectors)} pieces; {size} dimensions keep {share:.1%} of them: {PROJECTION}")


if __name__ == "__main__":
    typer.run(main)
