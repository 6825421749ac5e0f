"""The version of this package: KLDIV_VERSION of lib/kldiv.h, as the tests check."""
__version__ = "0.2.0"
