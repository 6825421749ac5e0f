# Builds and tests, then keeps the binary on a slim base.
#
#   docker build -t kldiv . && docker run -p 8080:8080 kldiv

FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make ca-certificates
WORKDIR /src
COPY . .
RUN make deps-test && make check && make install DESTDIR=/out PREFIX=/usr

FROM debian:bookworm-slim
RUN apt-get update && \
    apt-get install -y --no-install-recommends libmicrohttpd12 libjansson4 libcsv3 libsqlite3-0 libzip4 zlib1g \
        libcurl3-gnutls libgnutls30 libseccomp2 && \
    apt-get clean && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/* /var/log/* && \
    groupadd --system --gid 10001 kldiv && \
    useradd --system --no-create-home --uid 10001 --gid 10001 kldiv
COPY --from=build /out/usr/bin/kldivd /usr/bin/kldivd
USER 10001:10001
ENV KLDIV_LISTEN=0.0.0.0:8080 KLDIV_LOG_FORMAT=json KLDIV_DRAIN_DELAY=5
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=2s CMD ["/usr/bin/kldivd", "--healthcheck"]
ENTRYPOINT ["/usr/bin/kldivd"]
