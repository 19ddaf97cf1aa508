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

# What the programs need, and the C++ library for plugins of accelerators; nothing else: no shell, no package manager.
RUN mkdir -p /root-of-image/usr/local/bin /root-of-image/usr/share/penstock /root-of-image/etc /root-of-image/tmp \
 && chmod 1777 /root-of-image/tmp \
 && cp build/release/bin/penstock build/release/bin/penstock-load /root-of-image/usr/local/bin/ \
 && cp -r examples/models /root-of-image/usr/share/penstock/models \
 && echo 'penstock:x:65532:65532::/:/usr/sbin/nologin' >/root-of-image/etc/passwd \
 && echo 'penstock:x:65532:' >/root-of-image/etc/group \
 && { ldd build/release/bin/penstock build/release/bin/penstock-load /usr/lib/*/libstdc++.so.6; \
      printf ' => %s (\n' /usr/lib/*/libstdc++.so.6; } | sed -n 's|.* => \(/[^ ]*\) .*|\1|p; s|^[[:space:]]*\(/[^ :]*\) (.*|\1|p' \
      | sort -u | while read -r library; do mkdir -p "/root-of-image${library%/*}" && cp -L "$library" "/root-of-image$library"; done

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Penstock" \
      org.opencontainers.image.description="An inference server that batches single requests" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      com.amazonaws.sagemaker.capabilities.accept-bind-to-port=true \
      com.amazonaws.sagemaker.capabilities.multi-models=true
COPY --from=build /root-of-image/ /
# Where it listens; platforms set another one (docs/platforms.md).
ENV PORT=8080
# Served where nothing else is named or mounted.
ENV PENSTOCK_REPOSITORY=/usr/share/penstock/models
ENV PATH=/usr/local/bin
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=4s --start-period=60s CMD ["/usr/local/bin/penstock", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/penstock", "serve"]
