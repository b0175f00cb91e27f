# Image of peerfront: one static program and nothing else. Build the program first, then the image, in the root of the
# repository (the program is linked statically with glibc; --target keeps build scripts out of that):
#
#   RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$PWD=/src --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo" \
#       cargo build --release --locked --bin peerfront --target x86_64-unknown-linux-gnu
#   docker build -t localhost/peerfront:0.1.0 .
#
# e2e/image/build does both, in the same way every time.
FROM scratch
ARG PROGRAM=target/x86_64-unknown-linux-gnu/release/peerfront
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="peerfront" \
      org.opencontainers.image.description="Mixed-version front-end for any kube-apiserver" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
COPY $PROGRAM /peerfront
# The port that clients use (6443) belongs to the node's address, so the image is run on the host's network.
ENTRYPOINT ["/peerfront"]
CMD ["serve"]
# The kubelet asks by the probes of the pod; this is for Docker and Podman.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["/peerfront", "healthcheck"]
