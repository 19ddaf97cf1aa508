"""Proxies of others in front of the server: HTTP/1.1 and HTTP/2 on either side, large bodies among small ones."""

import exchange
from programs import find, free_ports, h2load, nghttp, running

HAPROXY = """
defaults
  mode http
  timeout connect 60s
  timeout client 60s
  timeout server 60s
{listeners}
"""
HAPROXY_LISTENER = """
frontend {name}
  bind 127.0.0.1:{port}
  default_backend {name}
backend {name}
  server penstock {server}
"""

NGINX = """
user root root;
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_max_body_size 64m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  proxy_next_upstream off;
  upstream clear {{ server 127.0.0.1:{clear}; keepalive 16; }}
  upstream tls {{ server 127.0.0.1:{tls}; keepalive 16; }}
  server {{ listen 127.0.0.1:{ports[0]}; location / {{ proxy_pass http://clear; }} }}
  server {{ listen 127.0.0.1:{ports[1]} http2; location / {{ proxy_pass http://clear; }} }}
  server {{ listen 127.0.0.1:{ports[2]} http2; location / {{ proxy_pass https://tls; }} }}
}}
"""

ENVOY = """
static_resources:
  listeners:{listeners}
  clusters:{clusters}
"""
ENVOY_LISTENER = """
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: {name}
          codec_type: AUTO
          route_config: {{virtual_hosts: [{{name: a, domains: ["*"], routes: [{{match: {{prefix: "/"}}, route: {{cluster: {name}}}}}]}}]}}
          http_filters: [{{name: envoy.filters.http.router, typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}}}]
"""
ENVOY_CLUSTER = """
  - name: {name}
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{{name}: {{}}}}
    load_assignment: {{cluster_name: {name}, endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {clear}}}}}}}}}]}}]}}
"""


def ask_through(ports, exchanges):
    """Each of the proxy's ports. `ports`: port -> the versions of HTTP that clients may speak there."""
    small, large = exchanges
    for port, versions in ports.items():
        url = f"http://127.0.0.1:{port}"
        if 1 in versions:
            exchange.ask(url, [large if i % 12 == 0 else small for i in range(100)], False)
        if 2 in versions:  # not by httpx: it fails where a response is complete before its own last frame
            for e, times in ((small, 400), (large, 20)):
                nghttp(url, e, 10)
                h2load(url, e, times)


def test_haproxy(server, exchanges, tmp_path):
    servers = dict(http1=f"127.0.0.1:{server.port}", http2=f"127.0.0.1:{server.port} proto h2", tls=f"127.0.0.1:{server.tls_port} ssl verify none alpn h2")
    ports = free_ports(len(servers))
    listeners = "".join(HAPROXY_LISTENER.format(name=name, port=port, server=to) for (name, to), port in zip(servers.items(), ports))
    (tmp_path / "haproxy.cfg").write_text(HAPROXY.format(listeners=listeners))
    with running([find("haproxy"), "-f", tmp_path / "haproxy.cfg"], ports, tmp_path / "log"):
        ask_through({port: (1, 2) for port in ports}, exchanges)


def test_nginx(server, exchanges, tmp_path):
    """Towards the server it speaks HTTP/1.1 only."""
    ports = free_ports(3)
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, clear=server.port, tls=server.tls_port, ports=ports))
    with running([find("nginx"), "-p", tmp_path, "-c", tmp_path / "nginx.conf"], ports, tmp_path / "log"):
        ask_through({ports[0]: (1,), ports[1]: (2,), ports[2]: (2,)}, exchanges)


def test_envoy(server, exchanges, tmp_path):
    ports, names = free_ports(2), ("http_protocol_options", "http2_protocol_options")
    listeners = "".join(ENVOY_LISTENER.format(name=name, port=port) for name, port in zip(names, ports))
    clusters = "".join(ENVOY_CLUSTER.format(name=name, clear=server.port) for name in names)
    (tmp_path / "envoy.yaml").write_text(ENVOY.format(listeners=listeners, clusters=clusters))
    with running([find("envoy"), "-c", tmp_path / "envoy.yaml", "--concurrency", "1", "--disable-hot-restart", "-l", "error"], ports, tmp_path / "log"):
        ask_through({port: (1, 2) for port in ports}, exchanges)
