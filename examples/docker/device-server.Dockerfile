# heddle device-server: the devices of this machine for clients that have a key, built from this repository:
#
#   heddle keys -o lab.key --name lab && sudo chown 10001 lab.key
#   docker build -f examples/docker/device-server.Dockerfile -t heddle-device-server --build-arg BASE=debian:bookworm-slim@sha256:... .
#   docker run --read-only --tmpfs /tmp -p 9300:9300 -v "$PWD/lab.key:/keys/psk:ro" heddle-device-server --devices cpu
#   HEDDLE_REMOTE=tls:HOST:9300 HEDDLE_REMOTE_PSK=lab.key heddle devices                       on a client
#
# BASE should name a digest, so that two builds start from the same files. Devices of drivers need these in the image, and --device
# or --gpus of docker run.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
# The versions are those of BASE's release.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends \
      build-essential cmake ninja-build pkg-config python3-venv libjansson-dev libssl-dev libsodium-dev \
    && rm -rf /var/lib/apt/lists/*
COPY . /source
# oneDNN, which the plugin cpu computes with on x86-64
RUN python3 -m venv /source/.venv && { [ "$(uname -m)" != x86_64 ] \
    || /source/.venv/bin/pip install --no-cache-dir onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0; }
RUN cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/opt/heddle \
      -DHEDDLE_TESTS=OFF -DHEDDLE_BENCH=OFF -DHEDDLE_EXAMPLES=OFF -DHEDDLE_PYTHON_BINDING=OFF -DHEDDLE_REMOTE=ON -DHEDDLE_DLPACK_INCLUDE=/source/modules/include \
    && cmake --build /build && cmake --install /build --strip

FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update && apt-get install -y --no-install-recommends libjansson4 libssl3 libsodium23 libgomp1 \
    && rm -rf /var/lib/apt/lists/* && useradd --system --uid 10001 --no-create-home heddle
COPY --from=build /opt/heddle /opt/heddle
USER 10001
ENV PATH=/opt/heddle/bin:/usr/bin:/bin XDG_CACHE_HOME=/tmp/cache
EXPOSE 9300
STOPSIGNAL SIGTERM
# A client of the server's own key: it gets through the handshake, and there is a device.
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s \
  CMD ["sh", "-c", "HEDDLE_REMOTE=tls:127.0.0.1:9300 HEDDLE_REMOTE_PSK=/keys/psk heddle devices | grep -q '^remote:'"]
ENTRYPOINT ["heddle", "device-server", "--listen", "0.0.0.0:9300", "--psk", "/keys/psk"]
