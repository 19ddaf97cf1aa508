/* The bare nghttp2 server that bench/grpc compares with: one loop, and each call is answered with
 * the message that came, and trailers. Usage: bare PORT */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 65536
#define EVENTS 64

typedef struct call {
    uint8_t *data;
    size_t bytes, capacity, sent;
} call;

typedef struct client {
    int fd;
    nghttp2_session *session;
} client;

#define FIELD(name, value)                                                                         \
    {                                                                                              \
        (uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1,                \
            NGHTTP2_NV_FLAG_NONE                                                                   \
    }

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *to, size_t most,
                         uint32_t *flags, nghttp2_data_source *source, void *unused)
{
    static const nghttp2_nv trailers[] = {FIELD("grpc-status", "0")};
    call *c = source->ptr;
    size_t bytes = c->bytes - c->sent < most ? c->bytes - c->sent : most;
    (void)unused;
    memcpy(to, c->data + c->sent, bytes);
    c->sent += bytes;
    if (c->sent == c->bytes) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, stream, trailers, 1);
    }
    return (ssize_t)bytes;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *unused)
{
    (void)unused;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                                calloc(1, sizeof(call)));
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t bytes, void *unused)
{
    call *c = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags, (void)unused;
    if (c->bytes + bytes > c->capacity) {
        c->capacity = 2 * (c->bytes + bytes);
        c->data = realloc(c->data, c->capacity);
    }
    memcpy(c->data + c->bytes, data, bytes);
    c->bytes += bytes;
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *unused)
{
    static const nghttp2_nv head[] = {FIELD(":status", "200"),
                                      FIELD("content-type", "application/grpc")};
    (void)unused;
    if (frame->hd.type != NGHTTP2_DATA || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    nghttp2_data_provider body = {
        .source.ptr = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id),
        .read_callback = read_body};
    return nghttp2_submit_response(session, frame->hd.stream_id, head, 2, &body);
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *unused)
{
    call *c = nghttp2_session_get_stream_user_data(session, stream);
    (void)code, (void)unused;
    if (c != NULL)
        free(c->data);
    free(c);
    return 0;
}

static client *accept_client(int listener, nghttp2_session_callbacks *callbacks)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}};
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return NULL;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    client *c = calloc(1, sizeof *c);
    c->fd = fd;
    nghttp2_session_server_new(&c->session, callbacks, c);
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 1);
    return c;
}

/* False: it is over. Responses are small: what the socket does not take at once ends it. */
static int serve(client *c)
{
    static uint8_t in[READ_BYTES], out[4 * READ_BYTES];
    const uint8_t *piece;
    ssize_t bytes = read(c->fd, in, sizeof in);
    if (bytes <= 0 || nghttp2_session_mem_recv(c->session, in, (size_t)bytes) != bytes)
        return 0;
    size_t filled = 0;
    while ((bytes = nghttp2_session_mem_send(c->session, &piece)) > 0) {
        if (filled + (size_t)bytes > sizeof out) {
            if (write(c->fd, out, filled) != (ssize_t)filled)
                return 0;
            filled = 0;
        }
        memcpy(out + filled, piece, (size_t)bytes);
        filled += (size_t)bytes;
    }
    return filled == 0 || write(c->fd, out, filled) == (ssize_t)filled;
}

static void close_client(client *c)
{
    nghttp2_session_del(c->session);
    close(c->fd);
    free(c);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(argv[1])),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1024) != 0)
        return 1;
    nghttp2_session_callbacks *callbacks;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN}, events[EVENTS];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        int count = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            client *c = events[i].data.ptr;
            if (c == NULL) {
                event.data.ptr = accept_client(listener, callbacks);
                if (event.data.ptr != NULL)
                    epoll_ctl(poll, EPOLL_CTL_ADD, ((client *)event.data.ptr)->fd, &event);
            } else if (!serve(c)) {
                close_client(c);
            }
        }
    }
}
