# syntax=docker/dockerfile:1

# The registry as an image that runs without root and with a read-only root file system:
#
#	docker build -t caddy-terraform-registry .
#	docker run --read-only -p 443:443 -v ./terraform:/srv/registry:ro -v registry:/data \
#		-e SERVER_NAME=registry.example.com caddy-terraform-registry
#
# /data contains the certificates and the registry's signing key: keep it. The environment
# variables are described in packaging/image.Caddyfile. With --build-arg FLAVOUR=xcaddy/blob
# the image has the file system of object stores. Docker lets every user listen on ports
# below 1024; where that is not so, set the sysctl net.ipv4.ip_unprivileged_port_start=0.

FROM --platform=$BUILDPLATFORM golang:1.26-alpine AS builder
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH FLAVOUR=xcaddy VERSION=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
	CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
	go build -C "$FLAVOUR" -tags nobadger,nomysql,nopgx -trimpath -o /out/caddy-terraform-registry \
	-ldflags "-s -w -X github.com/caddyserver/caddy/v2.CustomBinaryName=caddy-terraform-registry -X 'github.com/caddyserver/caddy/v2.CustomVersion=$VERSION'" .
# Folders of the user that the server runs as: volumes take over their owner.
RUN mkdir -p /out/data /out/config /out/srv/registry

FROM alpine:3.22
# With git, an upstream's modules can come from any repository.
RUN apk add --no-cache ca-certificates git mailcap
COPY --from=builder /out/caddy-terraform-registry /usr/bin/caddy-terraform-registry
COPY --from=builder --chown=65532:65532 /out/data /data
COPY --from=builder --chown=65532:65532 /out/config /config
COPY --from=builder --chown=65532:65532 /out/srv/registry /srv/registry
COPY packaging/image.Caddyfile /etc/caddy-terraform-registry/Caddyfile

ENV HOME=/data XDG_DATA_HOME=/data XDG_CONFIG_HOME=/config
USER 65532:65532
WORKDIR /srv
VOLUME ["/data", "/config"]
EXPOSE 80 443 443/udp
STOPSIGNAL SIGTERM

LABEL org.opencontainers.image.title="caddy-terraform-registry" \
	org.opencontainers.image.description="A Terraform and OpenTofu registry that serves a folder" \
	org.opencontainers.image.source="https://github.com/caddy-terraform/caddy-terraform-registry"

# Caddy answers this once the configuration is loaded and its listeners are open. An address,
# because wget would try only ::1 of localhost; and no proxy, which http_proxy may set.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --start-interval=1s \
	CMD ["wget", "-q", "-Y", "off", "-O", "/dev/null", "http://127.0.0.1:2019/config/apps"]

CMD ["caddy-terraform-registry", "run", "--config", "/etc/caddy-terraform-registry/Caddyfile"]
