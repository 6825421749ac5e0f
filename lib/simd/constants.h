/* Tables and polynomials of the vector kernels. Made by constants.py; edit that. */
#ifndef KLDIV_LIB_SIMD_CONSTANTS_H
#define KLDIV_LIB_SIMD_CONSTANTS_H

/* clang-format off */
#define LN2 0x1.62e42fefa39efp-1
#define LN2_HI 0x1.62e42fefa3800p-1 /* on the grid of 2^-42 */
#define LN2_LO 0x1.ef35793c76730p-45
#define EXP_LN2_HI 0x1.62e42fefa0000p-1 /* 36 bits: times sixteenths below 2^12 it is exact */
#define EXP_LN2_LO 0x1.cf79abc9e3b3ap-40

/* about 1/m for each sixteenth of [1, 2) */
static const double log_c[16] = {
    0x1.0000000000000p+0,
    0x1.d41d41d000000p-1,
    0x1.bacf915000000p-1,
    0x1.a41a41a000000p-1,
    0x1.8f9c190000000p-1,
    0x1.7d05f41000000p-1,
    0x1.6c16c17000000p-1,
    0x1.5c9882c000000p-1,
    0x1.4e5e0a7000000p-1,
    0x1.4141414000000p-1,
    0x1.3521cfb000000p-1,
    0x1.29e412a000000p-1,
    0x1.1f7047e000000p-1,
    0x1.15b1e5f000000p-1,
    0x1.0c97150000000p-1,
    0x1.0000000000000p-1,
};

/* -log(log_c) */
static const double log_of_c[16] = {
    0x0.0p+0,
    0x1.6f0d28d256b4cp-4,
    0x1.29552f6fff523p-3,
    0x1.9525a9e3456b4p-3,
    0x1.fb9186b5e3e2bp-3,
    0x1.2e8e2bc311d31p-2,
    0x1.5d1bdbea809cap-2,
    0x1.89a338581425bp-2,
    0x1.b44f77c5c8f63p-2,
    0x1.dd46a0501c4a1p-2,
    0x1.02552a5edd0ffp-1,
    0x1.154c3d2c4d5eap-1,
    0x1.2795e1219b11bp-1,
    0x1.393e0d42e2a1ap-1,
    0x1.4a4f85d303ebbp-1,
    0x1.62e42fefa39efp-1,
};

/* the same on the grid of 2^-42 */
static const double log_of_c_hi[16] = {
    0x0.0p+0,
    0x1.6f0d28d258000p-4,
    0x1.29552f7000000p-3,
    0x1.9525a9e346000p-3,
    0x1.fb9186b5e4000p-3,
    0x1.2e8e2bc312000p-2,
    0x1.5d1bdbea81000p-2,
    0x1.89a3385814000p-2,
    0x1.b44f77c5c9000p-2,
    0x1.dd46a0501c000p-2,
    0x1.02552a5edd000p-1,
    0x1.154c3d2c4d800p-1,
    0x1.2795e1219b000p-1,
    0x1.393e0d42e2800p-1,
    0x1.4a4f85d304000p-1,
    0x1.62e42fefa3800p-1,
};

/* and what the grid left out */
static const double log_of_c_lo[16] = {
    0x0.0p+0,
    -0x1.4b4619366460fp-44,
    -0x1.5b9656c471e00p-44,
    -0x1.297105d9f1589p-44,
    -0x1.d56eaab993d31p-47,
    -0x1.67b0309b72b77p-45,
    -0x1.8d6ba01c7c23fp-44,
    0x1.2d5c638c4082fp-45,
    -0x1.3ae53e24aa2b0p-47,
    0x1.282fc189a9275p-44,
    0x1.fd8ddad2bafecp-46,
    -0x1.0b2b26662e34ep-44,
    0x1.1aec3c3f3db7ap-45,
    0x1.0cd64ea13021dp-44,
    -0x1.44fcd840b85bcp-45,
    0x1.ef35793c76730p-45,
};

/* (log(1+r) - r) / r^2 on [-0.0312, 0.0625]; times r^2 within 2^-64.2 */
static const double wide_log_poly[10] = {
    -0x1.0000000000000p-1,
    0x1.555555555555dp-2,
    -0x1.0000000000ccap-2,
    0x1.9999999988d8ap-3,
    -0x1.5555553b09264p-3,
    0x1.2492488c56290p-3,
    -0x1.00008c6171281p-3,
    0x1.c72ede3d314c7p-4,
    -0x1.9808b4e863b47p-4,
    0x1.447cbbafa4886p-4,
};

/* (log(1+r) - r) / r^2 on [-0.0312, 0.0625]; times r^2 within 2^-53.9 */
static const double narrow_log_poly[8] = {
    -0x1.0000000000086p-1,
    0x1.555555555aba2p-2,
    -0x1.fffffff7d2e56p-3,
    0x1.999998706a488p-3,
    -0x1.55559b1aca906p-3,
    0x1.249bdb6e53331p-3,
    -0x1.ff2be106050c7p-4,
    0x1.9874e754240b9p-4,
};

/* (exp(r) - 1 - r) / r^2 on |r| <= ln2/32; times r^2 within 2^-64.4 */
static const double wide_exp_poly[6] = {
    0x1.0000000000001p-1,
    0x1.5555555555556p-3,
    0x1.55555554e93b7p-5,
    0x1.11111110e1059p-7,
    0x1.6c17ed5c1f49ep-10,
    0x1.a01b0c3c80bbcp-13,
};

/* (exp(r) - 1 - r) / r^2 on |r| <= ln2/32; times r^2 within 2^-45.7 */
static const double narrow_exp_poly[4] = {
    0x1.ffffffff57d7ap-2,
    0x1.555555552549dp-3,
    0x1.5556b342d640ep-5,
    0x1.1111d90669f41p-7,
};

/* 2^(j/16) */
static const double exp_table_hi[16] = {
    0x1.0000000000000p+0,
    0x1.0b5586cf9890fp+0,
    0x1.172b83c7d517bp+0,
    0x1.2387a6e756238p+0,
    0x1.306fe0a31b715p+0,
    0x1.3dea64c123422p+0,
    0x1.4bfdad5362a27p+0,
    0x1.5ab07dd485429p+0,
    0x1.6a09e667f3bcdp+0,
    0x1.7a11473eb0187p+0,
    0x1.8ace5422aa0dbp+0,
    0x1.9c49182a3f090p+0,
    0x1.ae89f995ad3adp+0,
    0x1.c199bdd85529cp+0,
    0x1.d5818dcfba487p+0,
    0x1.ea4afa2a490dap+0,
};

/* and what rounding left out */
static const double exp_table_lo[16] = {
    0x0.0p+0,
    0x1.8a62e4adc610bp-54,
    -0x1.19041b9d78a76p-55,
    0x1.9b07eb6c70573p-54,
    0x1.6f46ad23182e4p-55,
    0x1.ada0911f09ebcp-55,
    0x1.d4397afec42e2p-56,
    0x1.6324c054647adp-54,
    -0x1.bdd3413b26456p-54,
    -0x1.41577ee04992fp-55,
    0x1.6e9f156864b27p-54,
    0x1.c7c46b071f2bep-56,
    0x1.7a1cd345dcc81p-54,
    0x1.11065895048ddp-55,
    0x1.2ed02d75b3707p-55,
    -0x1.e9c23179c2893p-54,
};

/* clang-format on */
#endif
