/* The bare libh2o handler that bench/http compares with: same library, one loop, POST, and an
 * answer of the size an identity model gives. Usage: bare PORT ANSWER_BYTES */
#include <arpa/inet.h>
#include <h2o.h>
#include <stdlib.h>
#include <string.h>

static h2o_globalconf_t config;
static h2o_context_t context;
static h2o_accept_ctx_t accept_context;
static char *answer;
static size_t answer_bytes;

static int on_request(h2o_handler_t *self, h2o_req_t *request)
{
    static h2o_generator_t generator = {NULL, NULL};
    h2o_iovec_t body = h2o_iovec_init(answer, answer_bytes);
    (void)self;
    request->res.status = 200;
    request->res.reason = "OK";
    request->res.content_length = answer_bytes;
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL,
                   H2O_STRLIT("application/octet-stream"));
    h2o_start_response(request, &generator);
    h2o_send(request, &body, 1, H2O_SEND_STATE_FINAL);
    return 0;
}

static void on_accept(h2o_socket_t *listener, const char *error)
{
    h2o_socket_t *socket;
    while (error == NULL && (socket = h2o_evloop_socket_accept(listener)) != NULL)
        h2o_accept(&accept_context, socket);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    answer_bytes = (size_t)atoi(argv[2]);
    answer = calloc(1, answer_bytes + 1);
    h2o_config_init(&config);
    h2o_hostconf_t *host =
        h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof(h2o_handler_t))->on_req =
        on_request;
    h2o_context_init(&context, h2o_evloop_create(), &config);
    accept_context.ctx = &context;
    accept_context.hosts = config.hosts;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(argv[1])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, 1024) != 0)
        return 1;
    h2o_socket_t *listener = h2o_evloop_socket_create(context.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    h2o_socket_read_start(listener, on_accept);
    for (;;)
        h2o_evloop_run(context.loop, 1000);
}
