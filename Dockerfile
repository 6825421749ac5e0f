# Builds, then keeps the program and its libraries, and nothing else.
#
#   docker build -t kldiv . && docker run -p 127.0.0.1:8080:8080 -v kldiv:/var/lib/kldiv kldiv
#   docker build --target debug -t kldiv:debug .       the same on Debian, with a shell, gdb, strace and curl
#   docker build --platform linux/arm64 -t kldiv .     for ARM; compiled here, not emulated

FROM --platform=$BUILDPLATFORM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make ca-certificates
WORKDIR /src
ARG TARGETARCH
COPY Makefile .
COPY lib/kldiv.h lib/
COPY docker/package.mk docker/install-packages.sh docker/
COPY docker/image/cross.mk docker/image/
RUN make deps-image ARCH=$TARGETARCH
COPY . .
RUN make install ARCH=$TARGETARCH DESTDIR=/out PREFIX=/usr
ARG CHECK=no
RUN [ "$CHECK" = no ] || make check-image
ARG SOURCE_DATE_EPOCH
RUN make image-files ARCH=$TARGETARCH DESTDIR=/image && mkdir -p /state/kldiv && \
    touch -hd "@${SOURCE_DATE_EPOCH:-$(date +%s)}" /state/kldiv

FROM debian:bookworm-slim AS debug
COPY --from=build /image.packages /image.packages
RUN apt-get update && \
    apt-get install -y --no-install-recommends $(cat /image.packages) curl gdb procps strace && \
    apt-get clean && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* && \
    groupadd --gid 10001 kldiv && useradd --no-create-home --uid 10001 --gid 10001 kldiv
COPY --from=build /image/usr/bin/ /usr/bin/
COPY --from=build /image/usr/share/doc/kldiv/ /usr/share/doc/kldiv/
COPY --from=build --chown=10001:10001 /state/ /var/lib/
ENV KLDIV_LISTEN=[::]:8080 KLDIV_LOG_FORMAT=json KLDIV_DRAIN_DELAY=5 \
    KLDIV_STORE=sqlite:/var/lib/kldiv/kldiv.db KLDIV_STORE_FALLBACK=memory
USER 10001:10001
EXPOSE 8080
VOLUME /var/lib/kldiv
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=2s CMD ["/usr/bin/kldivd", "--healthcheck"]
ENTRYPOINT ["/usr/bin/kldivd"]

FROM scratch
COPY --from=build /image/ /
COPY --from=build --chown=10001:10001 /state/ /var/lib/
# Address of the repository, and the commit.
ARG SOURCE
ARG REVISION
LABEL org.opencontainers.image.title="kldiv" \
      org.opencontainers.image.description="The Kullback-Leibler divergence as a service: a loss, and monitors of drift" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.vendor="The kldiv authors"
ENV KLDIV_LISTEN=[::]:8080 KLDIV_LOG_FORMAT=json KLDIV_DRAIN_DELAY=5 \
    KLDIV_STORE=sqlite:/var/lib/kldiv/kldiv.db KLDIV_STORE_FALLBACK=memory
USER 10001:10001
EXPOSE 8080
VOLUME /var/lib/kldiv
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=2s CMD ["/usr/bin/kldivd", "--healthcheck"]
ENTRYPOINT ["/usr/bin/kldivd"]
