# Builds Penstock in one stage; the final image has only the programs and their libraries.
#
#   docker build -t penstock .            (with buildah: --format docker, or the HEALTHCHECK is lost)
#   docker run -p 8080:8080 penstock                                     serves the bundled model, digits
#   docker run -p 8080:8080 -v /my/models:/models:ro penstock --repository /models
FROM debian:bookworm-slim AS build
WORKDIR /source
COPY tools tools
RUN sed 's/#.*//' tools/packages/build.txt | xargs sh -c 'apt-get update -qq && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"' apt
COPY . .
RUN cmake --preset release -DPENSTOCK_TESTS=OFF \
 && cmake --build build/release --target penstock penstock-load \
 && strip --strip-debug build/release/bin/penstock build/release/bin/penstock-load

FROM debian:bookworm-slim
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      libh2o-evloop0.13 libjansson4 libjemalloc2 liburing2 libnghttp2-14 libpcre2-8-0 libprotobuf-c1 libssl3 libutf8proc2 zlib1g \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/* /usr/share/doc /usr/share/man \
 && useradd --system --uid 65532 --no-create-home --shell /usr/sbin/nologin penstock
COPY --from=build /source/build/release/bin/penstock /source/build/release/bin/penstock-load /usr/local/bin/
COPY examples/models /usr/share/penstock/models
USER 65532:65532
EXPOSE 8080
# The image has no curl; bash opens the connection.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s CMD ["/bin/bash", "-c", \
  "exec 3<>/dev/tcp/127.0.0.1/${PORT:-8080} && printf 'GET /v2/health/live HTTP/1.0\\r\\nHost: a\\r\\n\\r\\n' >&3 && IFS= read -r line <&3 && [[ $line == *' 200 '* ]]"]
STOPSIGNAL SIGTERM
# Where it listens; platforms set another one.
ENV PORT=8080
ENTRYPOINT ["penstock", "serve"]
CMD ["--repository", "/usr/share/penstock/models"]
