#!/usr/bin/env python3
"""Writes powers_of_ten.inc: for each k the 128 leading bits of 10^k, cut (never rounded up).

Used both ways between decimal and binary: number_scan.c and number_write.c say how they round.
"""
K_MIN, K_MAX = -342, 324

print("/* Made by powers_of_ten.py: {high, low} halves of floor(10^k * 2^s), s such that bit 127 is set, k = %d .. %d. */"
      % (K_MIN, K_MAX))
cells = []
for k in range(K_MIN, K_MAX + 1):
    if k >= 0:
        value = 10 ** k
        shift = 128 - value.bit_length()
        value = value << shift if shift >= 0 else value >> -shift
    else:
        divisor = 10 ** -k
        value = (1 << (divisor.bit_length() + 130)) // divisor
        value >>= value.bit_length() - 128
    assert value.bit_length() == 128
    cells.append("{0x%016x, 0x%016x}," % (value >> 64, value & (2 ** 64 - 1)))
for i in range(0, len(cells), 2):
    print(" ".join(cells[i:i + 2]))
