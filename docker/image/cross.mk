# ARCH=arm64 or amd64, a Debian name, compiles for that machine where it is another: make deps-image ARCH=arm64
TRIPLET_amd64 = x86_64-linux-gnu
TRIPLET_arm64 = aarch64-linux-gnu
CROSS_ARCH := $(filter-out $(shell dpkg --print-architecture),$(ARCH))
ifneq ($(CROSS_ARCH),)
TRIPLET := $(TRIPLET_$(CROSS_ARCH))
CC = $(CCACHE) $(TRIPLET)-gcc
AR = $(TRIPLET)-ar
BINUTILS = $(TRIPLET)-
MACHINE := $(TRIPLET:%-linux-gnu=%)
B = build/$(VARIANT)-$(CROSS_ARCH)
endif
