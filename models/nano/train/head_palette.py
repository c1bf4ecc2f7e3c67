"""Does the head's arithmetic matter? Gives every matrix of a checkpoint's joint head 64 values per 16 rows.

  head_palette.py CHECKPOINT OUT      then: clefkit eval SET -m OUT --against CHECKPOINT

If a model's answers came from its prior alone, nothing would move.
"""

import shutil
import sys

import numpy as np
import torch
from safetensors.torch import load_file, save_file

ROWS, ENTRIES, ROUNDS = 16, 64, 25


def palettized(matrix):
    """The matrix with each group of 16 rows reduced to 64 values by Lloyd's algorithm from quantiles."""
    values = matrix.float().numpy().copy()
    for row in range(0, len(values), ROWS):
        group = values[row:row + ROWS].reshape(-1)
        table = np.quantile(group, (np.arange(ENTRIES) + 0.5) / ENTRIES)
        for _ in range(ROUNDS):
            nearest = np.abs(group[:, None] - table).argmin(1)
            table = np.array([group[nearest == i].mean() if (nearest == i).any() else table[i]
                              for i in range(ENTRIES)])
        values[row:row + ROWS] = table[np.abs(group[:, None] - table).argmin(1)].reshape(-1, values.shape[1])
    return torch.from_numpy(values).to(matrix.dtype)


def main():
    checkpoint, out = sys.argv[1:]
    shutil.copytree(checkpoint, out)
    tensors = load_file(out + "/joint_head.safetensors")
    names = [name for name, tensor in tensors.items() if tensor.dim() == 2 and len(tensor) % ROWS == 0]
    for name in names:
        tensors[name] = palettized(tensors[name])
    save_file(tensors, out + "/joint_head.safetensors")
    print(len(names), "matrices have", ENTRIES, "values per", ROWS, "rows")


if __name__ == "__main__":
    main()
