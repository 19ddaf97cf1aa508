/* Sends one request again and again over connections that stay open, and compares each response
 * with the first.
 *
 *     send_requests PORT http1|h2c PATH HEADERS_FILE BODY_FILE IN_FLIGHT
 *
 * HEADERS_FILE holds lines "name: value". HTTP/1.1 has IN_FLIGHT connections, HTTP/2 one connection
 * with IN_FLIGHT streams. Each line of standard input is a number of requests to send; when all
 * have been answered it prints "N answered", or says what is wrong and ends with 1. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BYTES_MAX (256 << 10)
#define HEADERS_MAX 16
#define IN_FLIGHT_MAX 64

typedef struct buffer {
    char bytes[BYTES_MAX];
    size_t used;
} buffer;

typedef struct exchange {
    buffer response; /* HTTP/1.1: with its head; HTTP/2: the body */
    size_t sent;     /* HTTP/2: of the request's body */
    int status;
} exchange;

static buffer request, body, expected;
static exchange exchanges[IN_FLIGHT_MAX];
static int sockets[IN_FLIGHT_MAX];
static int64_t to_send, answered;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("failed after %lld: ", (long long)answered);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    exit(1);
}

static void append(buffer *b, const void *bytes, size_t count)
{
    if (b->used + count > sizeof b->bytes)
        fail("more than %d bytes", BYTES_MAX);
    memcpy(b->bytes + b->used, bytes, count);
    b->used += count;
}

static void read_file(const char *path, buffer *into)
{
    FILE *f = fopen(path, "re");
    if (f == NULL)
        fail("cannot open %s", path);
    into->used = fread(into->bytes, 1, sizeof into->bytes, f);
    fclose(f);
}

static int connect_to(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int s = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (s < 0 || connect(s, (struct sockaddr *)&address, sizeof address) != 0)
        fail("cannot connect to port %d", port);
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return s;
}

static void send_all(int s, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = send(s, bytes, count, MSG_NOSIGNAL);
        if (n <= 0)
            fail("the server has closed the connection");
        bytes += n;
        count -= (size_t)n;
    }
}

static void take_response(int status, const char *bytes, size_t count)
{
    if (status != 200)
        fail("status %d: %.*s", status, (int)(count < 300 ? count : 300), bytes);
    if (expected.used == 0)
        append(&expected, bytes, count);
    if (count != expected.used || memcmp(bytes, expected.bytes, count) != 0)
        fail("another response than the first: %.*s", (int)(count < 300 ? count : 300), bytes);
    answered++;
}

/* Whole response in `b`? Then its body's length, else -1. */
static long body_length(buffer *b, char **body_begin)
{
    b->bytes[b->used < BYTES_MAX ? b->used : BYTES_MAX - 1] = 0;
    char *end = strstr(b->bytes, "\r\n\r\n"), *length = strcasestr(b->bytes, "content-length:");
    if (end == NULL)
        return -1;
    if (length == NULL || length > end)
        fail("a response without its length: %.300s", b->bytes);
    long bytes = atol(length + 15);
    *body_begin = end + 4;
    return (size_t)(end + 4 - b->bytes) + (size_t)bytes <= b->used ? bytes : -1;
}

static void run_http1(int64_t count, int in_flight)
{
    struct pollfd polls[IN_FLIGHT_MAX];
    to_send = count;
    for (int i = 0; i < in_flight; i++) {
        polls[i] = (struct pollfd){.fd = sockets[i], .events = POLLIN};
        if (to_send-- > 0)
            send_all(sockets[i], request.bytes, request.used);
    }
    for (int64_t end = answered + count; answered < end;) {
        if (poll(polls, (nfds_t)in_flight, 60000) <= 0)
            fail("no response for 60 s");
        for (int i = 0; i < in_flight; i++) {
            buffer *b = &exchanges[i].response;
            char *begin;
            if (polls[i].revents == 0)
                continue;
            ssize_t n = recv(sockets[i], b->bytes + b->used, BYTES_MAX - 1 - b->used, 0);
            if (n <= 0)
                fail("the server has closed the connection");
            b->used += (size_t)n;
            long length = body_length(b, &begin);
            if (length < 0)
                continue;
            take_response(atoi(b->bytes + 9), begin, (size_t)length);
            b->used = 0;
            if (to_send-- > 0)
                send_all(sockets[i], request.bytes, request.used);
        }
    }
}

static nghttp2_nv headers[HEADERS_MAX];
static size_t header_count;

static void add_header(char *name, char *value)
{
    if (header_count == HEADERS_MAX)
        fail("more than %d headers", HEADERS_MAX);
    headers[header_count++] = (nghttp2_nv){.name = (uint8_t *)name,
                                           .value = (uint8_t *)value,
                                           .namelen = strlen(name),
                                           .valuelen = strlen(value)};
}

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *into, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *unused)
{
    (void)session, (void)stream, (void)unused;
    exchange *e = source->ptr;
    size_t count = body.used - e->sent < room ? body.used - e->sent : room;
    memcpy(into, body.bytes + e->sent, count);
    e->sent += count;
    if (e->sent == body.used)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)count;
}

static void submit(nghttp2_session *session, exchange *e)
{
    nghttp2_data_provider provider = {.source.ptr = e, .read_callback = read_body};
    if (to_send-- <= 0)
        return;
    e->sent = e->response.used = 0;
    e->status = 0;
    if (nghttp2_submit_request(session, NULL, headers, header_count, &provider, e) < 0)
        fail("nghttp2 takes no request");
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *bytes, size_t count, int flags,
                       void *unused)
{
    (void)session, (void)flags, (void)unused;
    send_all(sockets[0], (const char *)bytes, count);
    return (ssize_t)count;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                     void *unused)
{
    (void)value_length, (void)flags, (void)unused;
    exchange *e = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (e != NULL && name_length == 7 && memcmp(name, ":status", 7) == 0)
        e->status = atoi((const char *)value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *bytes,
                   size_t count, void *unused)
{
    (void)flags, (void)unused;
    append(&((exchange *)nghttp2_session_get_stream_user_data(session, stream))->response, bytes,
           count);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error, void *unused)
{
    (void)unused;
    exchange *e = nghttp2_session_get_stream_user_data(session, stream);
    if (error != 0)
        fail("stream %d is reset with error %u", stream, error);
    take_response(e->status, e->response.bytes, e->response.used);
    submit(session, e);
    return 0;
}

static nghttp2_session *open_session(void)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    nghttp2_settings_entry windows[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    if (nghttp2_session_client_new(&session, callbacks, NULL) != 0)
        fail("no nghttp2 session");
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, windows, 1);
    return session;
}

static void run_http2(nghttp2_session *session, int64_t count, int in_flight)
{
    static uint8_t bytes[65536];
    to_send = count;
    for (int i = 0; i < in_flight; i++)
        submit(session, &exchanges[i]);
    for (int64_t end = answered + count; answered < end;) {
        struct pollfd p = {.fd = sockets[0], .events = POLLIN};
        if (nghttp2_session_send(session) != 0 || poll(&p, 1, 60000) <= 0)
            fail("no response for 60 s");
        ssize_t n = recv(sockets[0], bytes, sizeof bytes, 0);
        if (n <= 0 || nghttp2_session_mem_recv(session, bytes, (size_t)n) < 0)
            fail("the server has closed the connection");
    }
    nghttp2_session_send(session); /* acknowledgements */
}

/* Fills `request` (HTTP/1.1) and `headers` (HTTP/2) from the lines of the file. */
static void prepare(char *path, const char *headers_path)
{
    static buffer lines;
    static char length[24];
    char head[512];
    read_file(headers_path, &lines);
    lines.bytes[lines.used] = 0;
    append(&request, head,
           (size_t)snprintf(head, sizeof head, "POST %s HTTP/1.1\r\nhost: penstock\r\n", path));
    add_header(":method", "POST");
    add_header(":scheme", "http");
    add_header(":authority", "penstock");
    add_header(":path", path);
    for (char *line = strtok(lines.bytes, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *value = strstr(line, ": ");
        if (value == NULL)
            fail("not a header: %s", line);
        append(&request, line, strlen(line));
        append(&request, "\r\n", 2);
        *value = 0;
        add_header(line, value + 2);
    }
    snprintf(length, sizeof length, "%zu", body.used);
    add_header("content-length", length);
    append(&request, head,
           (size_t)snprintf(head, sizeof head, "content-length: %s\r\n\r\n", length));
    append(&request, body.bytes, body.used);
}

int main(int argc, char **argv)
{
    char line[32];
    int in_flight = argc == 7 ? atoi(argv[6]) : 0;
    if (in_flight < 1 || in_flight > IN_FLIGHT_MAX) {
        fprintf(stderr,
                "usage: send_requests PORT http1|h2c PATH HEADERS_FILE BODY_FILE "
                "IN_FLIGHT (at most %d)\n",
                IN_FLIGHT_MAX);
        return 2;
    }
    bool is_http2 = strcmp(argv[2], "h2c") == 0;
    read_file(argv[5], &body);
    prepare(argv[3], argv[4]);
    for (int i = 0; i < (is_http2 ? 1 : in_flight); i++)
        sockets[i] = connect_to(atoi(argv[1]));
    nghttp2_session *session = is_http2 ? open_session() : NULL;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (is_http2)
            run_http2(session, atoll(line), in_flight);
        else
            run_http1(atoll(line), in_flight);
        printf("%lld answered\n", (long long)answered);
        fflush(stdout);
    }
    return 0;
}
