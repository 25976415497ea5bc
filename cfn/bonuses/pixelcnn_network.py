"""PixelCNN, an autoregressive density model of small grey images (van den Oord et al., 2016), as in the published runs.

Departures from van den Oord et al., for both gates: one stack of masked convolutions, with a blind spot above and to
the right of each pixel, instead of a vertical and a horizontal stack; 16 channels and two blocks; a learned embedding
of the position; grey levels enter as the numbers 0 to 7.

`product` is their gate, tanh(a) * sigmoid(b). `sum` is the one of the published runs, tanh(a) + sigmoid(b).
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

LEVELS = 8
"""Number of grey levels."""
CHANNELS, EMBEDDING, HEAD = 16, 4, 64
"""Channels of the blocks, of the position embedding, and of the last hidden layer."""
BLOCKS = 2
"""Number of gated blocks."""

Gate = Literal["sum", "product"]


class MaskedConv2d(nn.Conv2d):
    """Convolution over the pixels before each pixel in reading order (type A), or also over itself (type B)."""

    mask: Tensor

    def __init__(self, inputs: int, outputs: int, kernel: int, sees_itself: bool) -> None:
        super().__init__(inputs, outputs, kernel, padding=kernel // 2)
        mask = torch.zeros(kernel, kernel)
        middle = kernel // 2
        mask[:middle] = 1
        mask[middle, : middle + sees_itself] = 1
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, input: Tensor) -> Tensor:
        """Convolve with the masked kernel."""
        return functional.conv2d(input, self.weight * self.mask, self.bias, padding=self.padding)


class GatedBlock(nn.Module):
    """x + W gate(a, b), with a and b from the previous pixels and from the pixel's position.

    Args:
        gate: How the two halves are joined.
    """

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._adds = gate == "sum"
        self.conv = MaskedConv2d(CHANNELS, 2 * CHANNELS, 3, sees_itself=True)
        self.place = nn.Conv2d(EMBEDDING, 2 * CHANNELS, 1)
        self.join = nn.Conv2d(CHANNELS, CHANNELS, 1)

    def forward(self, input: Tensor, embedding: Tensor) -> Tensor:
        """Apply the block to features and the position embedding."""
        a, b = (self.conv(input) + self.place(embedding)).chunk(2, dim=1)
        a, b = torch.tanh(a), torch.sigmoid(b)
        output: Tensor = input + self.join(a + b if self._adds else a * b)
        return output


class PixelCNN(nn.Module):
    """Autoregressive density model of square images with 8 grey levels.

    The 1x1 convolutions are plain: a kernel of one pixel has nothing to mask in type B.

    Args:
        side: Height and width of the images.
        gate: How a block joins its two halves.
    """

    def __init__(self, side: int, gate: Gate = "product") -> None:
        super().__init__()
        self.first = MaskedConv2d(1, CHANNELS, 7, sees_itself=False)
        self.blocks = nn.ModuleList([GatedBlock(gate) for _ in range(BLOCKS)])
        self.place = nn.Conv2d(EMBEDDING, CHANNELS, 1)
        self.head = nn.Sequential(nn.ReLU(), nn.Conv2d(CHANNELS, HEAD, 1), nn.ReLU(), nn.Conv2d(HEAD, LEVELS, 1))
        self.embedding = nn.Parameter(torch.empty(1, EMBEDDING, side, side))
        self._initialize(side)

    def forward(self, levels: Tensor) -> Tensor:
        """Return log p of each image from its grey levels."""
        return -functional.cross_entropy(self.logits(levels), levels, reduction="none").sum(dim=(1, 2))

    def logits(self, levels: Tensor) -> Tensor:
        """Return the logits of each pixel, never in bfloat16, whose rounding would hide small prediction gains."""
        with torch.autocast(levels.device.type, enabled=False):
            x = self.first(levels.unsqueeze(1).float())
            for block in self.blocks:
                x = block(x, self.embedding)
            logits: Tensor = self.head(x + self.place(self.embedding))
            return logits

    def _initialize(self, side: int) -> None:
        """Draw the initial weights of the published runs.

        Layers: Glorot uniform, with the fans of the full kernel, because a framework's initialiser does not know the
        mask; biases zero. Embedding: uniform with variance 1 / fan-in; an initialiser reads its shape as that of a
        kernel over side x side pixels of one channel, so the fan-in is side^2.
        """
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                assert module.bias is not None
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        limit = math.sqrt(3 / side**2)
        nn.init.uniform_(self.embedding, -limit, limit)
