/* Tables and polynomials of the vector kernels. Made by constants.py; edit that. */
#pragma once

/* clang-format off */
#define LN2 0x1.62e42fefa39efp-1
#define LN2_HI 0x1.62e42fefa3800p-1 /* on the grid of 2^-42 */
#define LN2_LO 0x1.ef35793c76730p-45
#define EXP_LN2_HI 0x1.62e42fefa0000p-1 /* 36 bits: times sixteenths below 2^12 it is exact */
#define EXP_LN2_LO 0x1.cf79abc9e3b3ap-40

/* about 1/m for each sixteenth of [1, 2) */
static const double invc[16] = {
    0x1.0000000000000p+0, 0x1.d41d41d000000p-1, 0x1.bacf915000000p-1, 0x1.a41a41a000000p-1,
    0x1.8f9c190000000p-1, 0x1.7d05f41000000p-1, 0x1.6c16c17000000p-1, 0x1.5c9882c000000p-1,
    0x1.4e5e0a7000000p-1, 0x1.4141414000000p-1, 0x1.3521cfb000000p-1, 0x1.29e412a000000p-1,
    0x1.1f7047e000000p-1, 0x1.15b1e5f000000p-1, 0x1.0c97150000000p-1, 0x1.0000000000000p-1,
};

/* -log(invc) */
static const double logc[16] = {
    0x0.0p+0, 0x1.6f0d28d256b4cp-4, 0x1.29552f6fff523p-3, 0x1.9525a9e3456b4p-3,
    0x1.fb9186b5e3e2bp-3, 0x1.2e8e2bc311d31p-2, 0x1.5d1bdbea809cap-2, 0x1.89a338581425bp-2,
    0x1.b44f77c5c8f63p-2, 0x1.dd46a0501c4a1p-2, 0x1.02552a5edd0ffp-1, 0x1.154c3d2c4d5eap-1,
    0x1.2795e1219b11bp-1, 0x1.393e0d42e2a1ap-1, 0x1.4a4f85d303ebbp-1, 0x1.62e42fefa39efp-1,
};

/* the same on the grid of 2^-42 */
static const double logc_hi[16] = {
    0x0.0p+0, 0x1.6f0d28d258000p-4, 0x1.29552f7000000p-3, 0x1.9525a9e346000p-3,
    0x1.fb9186b5e4000p-3, 0x1.2e8e2bc312000p-2, 0x1.5d1bdbea81000p-2, 0x1.89a3385814000p-2,
    0x1.b44f77c5c9000p-2, 0x1.dd46a0501c000p-2, 0x1.02552a5edd000p-1, 0x1.154c3d2c4d800p-1,
    0x1.2795e1219b000p-1, 0x1.393e0d42e2800p-1, 0x1.4a4f85d304000p-1, 0x1.62e42fefa3800p-1,
};

/* and what the grid left out */
static const double logc_lo[16] = {
    0x0.0p+0, -0x1.4b4619366460fp-44, -0x1.5b9656c471e00p-44, -0x1.297105d9f1589p-44,
    -0x1.d56eaab993d31p-47, -0x1.67b0309b72b77p-45, -0x1.8d6ba01c7c23fp-44, 0x1.2d5c638c4082fp-45,
    -0x1.3ae53e24aa2b0p-47, 0x1.282fc189a9275p-44, 0x1.fd8ddad2bafecp-46, -0x1.0b2b26662e34ep-44,
    0x1.1aec3c3f3db7ap-45, 0x1.0cd64ea13021dp-44, -0x1.44fcd840b85bcp-45, 0x1.ef35793c76730p-45,
};

/* (log(1+r) - r) / r^2 on [-0.0312, 0.0625]; times r^2 within 2^-64.2 */
static const double f64_log_poly[10] = {
    -0x1.0000000000000p-1, 0x1.555555555555dp-2, -0x1.0000000000ccap-2, 0x1.9999999988d8ap-3,
    -0x1.5555553b09264p-3, 0x1.2492488c56290p-3, -0x1.00008c6171281p-3, 0x1.c72ede3d314c7p-4,
    -0x1.9808b4e863b47p-4, 0x1.447cbbafa4886p-4,
};

/* (log(1+r) - r) / r^2 on [-0.0312, 0.0625]; times r^2 within 2^-53.9 */
static const double f32_log_poly[8] = {
    -0x1.0000000000086p-1, 0x1.555555555aba2p-2, -0x1.fffffff7d2e56p-3, 0x1.999998706a488p-3,
    -0x1.55559b1aca906p-3, 0x1.249bdb6e53331p-3, -0x1.ff2be106050c7p-4, 0x1.9874e754240b9p-4,
};

/* (log(1+r) - r) / r^2 on [-0.0312, 0.0625]; times r^2 within 2^-48.3 */
static const double short_log_poly[7] = {
    -0x1.0000000001317p-1, 0x1.55555553cbf67p-2, -0x1.ffffff07030a5p-3, 0x1.9999c2786c7aep-3,
    -0x1.555e52363f9bep-3, 0x1.245671c278876p-3, -0x1.d24c27028e35ep-4,
};

/* (log(1+r) - r) / r^2 on [-0.0312, 0.0625]; times r^2 within 2^-42.7 */
static const double f16_log_poly[6] = {
    -0x1.ffffffffb415cp-2, 0x1.555555057690ep-2, -0x1.0000092794bd6p-2, 0x1.99a18240b45d2p-3,
    -0x1.554634ab195e2p-3, 0x1.0e5e27b615f25p-3,
};

/* (log(1+r) - r) / r^2 on [-0.0312, 0.0625]; times r^2 within 2^-37.1 */
static const double bf16_log_poly[5] = {
    -0x1.ffffffdfc3608p-2, 0x1.5555570fffe14p-2, -0x1.00032ec97f3bap-2, 0x1.99b490fc3aca7p-3,
    -0x1.4006103621793p-3,
};

/* (exp(r) - 1 - r) / r^2 on |r| <= ln2/32; times r^2 within 2^-64.4 */
static const double f64_exp_poly[6] = {
    0x1.0000000000001p-1, 0x1.5555555555556p-3, 0x1.55555554e93b7p-5, 0x1.11111110e1059p-7,
    0x1.6c17ed5c1f49ep-10, 0x1.a01b0c3c80bbcp-13,
};

/* exp(r) on |r| <= ln2/32, within 2^-47.6 */
static const double f32_exp_poly[6] = {
    0x1.0000000000014p+0, 0x1.0000000000003p+0, 0x1.fffffffd0b49bp-2, 0x1.555555547d216p-3,
    0x1.55576239dec7fp-5, 0x1.11123d01366d4p-7,
};

/* exp(r) on |r| <= ln2/32, within 2^-38.5 */
static const double half_exp_poly[5] = {
    0x1.0000000000000p+0, 0x1.fffffffb12cf8p-1, 0x1.fffffffe5b9aep-2, 0x1.5557e5734c36ap-3,
    0x1.55570abe5482fp-5,
};

/* 2^(j/16), with j taken off the bits from 2^48 up: adding n 2^48 makes 2^(n/16) */
static const double exp2_table[16] = {
    0x1.0000000000000p+0, 0x1.fb5586cf9890fp-1, 0x1.f72b83c7d517bp-1, 0x1.f387a6e756238p-1,
    0x1.f06fe0a31b715p-1, 0x1.edea64c123422p-1, 0x1.ebfdad5362a27p-1, 0x1.eab07dd485429p-1,
    0x1.ea09e667f3bcdp-1, 0x1.ea11473eb0187p-1, 0x1.eace5422aa0dbp-1, 0x1.ec49182a3f090p-1,
    0x1.ee89f995ad3adp-1, 0x1.f199bdd85529cp-1, 0x1.f5818dcfba487p-1, 0x1.fa4afa2a490dap-1,
};

/* what rounding left out of 2^(j/16), in proportion */
static const double exp_table_lo[16] = {
    0x0.0p+0, 0x1.79aa65d837b6cp-54, -0x1.01b15eaa59348p-55, 0x1.68efde3a8a893p-54,
    0x1.34d754db0abb6p-55, 0x1.59f48a72a4c6cp-55, 0x1.690cebb7aafb0p-56, 0x1.063e1e21c5409p-54,
    -0x1.3b3efbf5e2229p-54, -0x1.b32dcb94da51dp-56, 0x1.db72fc1f0eab4p-55, 0x1.1affc2b91ce27p-56,
    0x1.c1a7792cb3386p-55, 0x1.36eae30af0cb3p-56, 0x1.4a385a63d07a7p-56, -0x1.ff7128fd391f1p-55,
};

/* clang-format on */
