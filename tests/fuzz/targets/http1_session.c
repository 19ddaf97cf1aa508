/* Whole connections of HTTP/1 with the event loop that serves: accept, libh2o behind our overrides,
 * requests that are answered at different times. One thread; the client's end is in this file. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "server/http/library.h"
#include "server/http/loop.h"
#include "server/request/respond.h"
#include "tests/fuzz/fuzz.h"

#define BODY_BYTES_MAX 8192
#define LARGE_BYTES 300000 /* more than the sockets' buffers hold */
#define TURNS_MAX 5000

enum {
    ANSWERS_LATE = 1, /* after the rest of the input has come */
    ANSWERS_LARGE = 2,
    LEAVES_EARLY = 4, /* the client is gone before it has read all */
    READS_LATE = 8,
    DRAINS = 16,
};

static struct {
    server_options options;
    request_routes routes;
    loop_shared shared;
    loop loop;
    struct sockaddr_un name;
    socklen_t name_bytes;
    char large[LARGE_BYTES];
} edge;

/* One connection, as its client sees it. */
static struct {
    uint8_t options;
    int fd;
    int handled; /* requests, in order */
    /* The one that waits. HTTP/1 has no two at once; after an upgrade the others do not wait. */
    request_message message;
    int number;
    bool is_waiting, is_posted;
    text_buffer output;
    bool takes_nothing; /* the server has closed its end */
    bool has_ended;     /* and all it has sent is here */
} client;

/* Says which request it answers. */
static void answer(request *r, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    respond_header(r, "x-number", text, strlen(text));
    if (r->is_head)
        respond_header(r, "x-head", "1", 1);
    if (client.options & ANSWERS_LARGE)
        respond_text(r, 200, "text/plain", edge.large, LARGE_BYTES);
    else
        respond_text(r, 200, "text/plain", text, strlen(text));
}

/* Also when its client has gone. */
static void answer_late(request *r)
{
    client.is_waiting = false;
    if (!request_has_ended(r))
        answer(r, client.number);
}

static void handle(request *r)
{
    volatile uint8_t sum = 0;
    assert(r->body.bytes <= BODY_BYTES_MAX);
    for (size_t i = 0; i < r->body.bytes; i++)
        sum ^= (uint8_t)r->body.data[i];
    (void)sum;
    (void)request_header(r, "content-encoding");
    client.handled++;
    if (!(client.options & ANSWERS_LATE) || client.is_waiting) {
        answer(r, client.handled - 1);
        return;
    }
    client.is_waiting = true;
    client.is_posted = false;
    client.number = client.handled - 1;
    client.message.request = r;
    r->resume = answer_late;
}

/* A listener of the loop, as if edge.c had opened it. */
static void listen_on_a_name(void)
{
    edge.name.sun_family = AF_UNIX; /* an abstract one: nothing is left in a folder */
    int n = snprintf(edge.name.sun_path + 1, sizeof edge.name.sun_path - 1, "penstock-fuzz-%d",
                     (int)getpid());
    edge.name_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failure = bind(fd, (struct sockaddr *)&edge.name, edge.name_bytes);
    failure |= listen(fd, 16);
    assert(failure == 0);
    edge.loop.listen_fds[0] = fd;
}

static void begin(void)
{
    server_options_default(&edge.options);
    edge.options.limits.body_bytes_max = BODY_BYTES_MAX;
    edge.options.limits.connections_max = 16;
    edge.options.listeners[0] = (server_listener){.host = "unix"};
    edge.options.listener_count = 1;
    for (int i = 0; i < ROUTE_KIND_COUNT; i++)
        edge.routes.of[i] = (request_route){.handle = handle, .is_early = true, .is_absent = true};
    edge.routes.starting = handle;
    memset(edge.large, 'x', sizeof edge.large);
    log_configure(LOG_ERROR, LOG_FORMAT_TEXT);
    signal(SIGPIPE, SIG_IGN);
    service *s = edge.shared.service = service_create(&edge.options, 1);
    assert(s != NULL);
    status failure = service_load_access(s);
    assert(failure == STATUS_OK);
    s->connections_max = edge.options.limits.connections_max;
    tls_init(&edge.shared.tls);
    library_configure(&edge.shared.config, &edge.options);
    failure = loop_init(&edge.loop, &edge.shared, &edge.routes, 0);
    assert(failure == STATUS_OK);
    listen_on_a_name();
    loop_begin(&edge.loop);
}

/* What the server has sent, as far as it is there. */
static void take_output(void)
{
    char data[16384];
    ssize_t n;
    while ((n = recv(client.fd, data, sizeof data, MSG_DONTWAIT)) > 0)
        text_buffer_append(&client.output, data, (size_t)n);
    client.has_ended |= n == 0 || (n < 0 && errno != EAGAIN);
}

static void turn(int count, bool is_reading)
{
    for (int i = 0; i < count; i++) {
        loop_turn(&edge.loop, 0);
        if (is_reading)
            take_output();
    }
}

/* Sends a piece; the server may have ended the connection. */
static void send_piece(fuzz_input *in, size_t step)
{
    size_t n = in->bytes < step ? in->bytes : step;
    ssize_t sent = send(client.fd, in->data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN)
        client.takes_nothing = true;
    in->data += sent > 0 ? (size_t)sent : 0;
    in->bytes -= sent > 0 ? (size_t)sent : 0;
}

static void post_what_waits(void)
{
    if (client.is_waiting && !client.is_posted)
        request_post(&client.message);
    client.is_posted |= client.is_waiting;
}

static void answer_what_waits(void)
{
    post_what_waits();
    turn(2, !(client.options & READS_LATE));
}

static size_t number_after(const char *head, size_t bytes, const char *name, size_t otherwise)
{
    const char *at = memmem(head, bytes, name, strlen(name));
    return at != NULL ? strtoul(at + strlen(name), NULL, 10) : otherwise;
}

/* Responses in the order of their requests, each whole. Returns how many are the handler's. */
static int check_output(void)
{
    size_t bytes = client.output.bytes;
    const char *at = bytes > 0 ? client.output.data : "", *end = at + bytes;
    int numbered = 0;
    while (at < end) {
        const char *stop = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
        if (stop == NULL || memcmp(at, "HTTP/1.1 ", 9) != 0) {
            assert(client.options & LEAVES_EARLY);
            return numbered;
        }
        size_t head = (size_t)(stop + 4 - at);
        int code = atoi(at + 9);
        assert(code >= 100 && code < 600);
        if (code == 101)
            return -1; /* what follows is HTTP/2 */
        size_t number = number_after(at, head, "x-number: ", SIZE_MAX);
        assert(number == SIZE_MAX || number == (size_t)numbered++);
        size_t body = code < 200 ? 0 : number_after(at, head, "Content-Length: ", SIZE_MAX);
        bool is_head = number_after(at, head, "x-head: ", 0) == 1;
        at += head;
        assert(body != SIZE_MAX);
        if (is_head || (number == SIZE_MAX && end - at >= 9 && memcmp(at, "HTTP/1.1 ", 9) == 0))
            continue;
        assert((size_t)(end - at) >= body || (client.options & LEAVES_EARLY));
        at += (size_t)(end - at) < body ? (size_t)(end - at) : body;
    }
    return numbered;
}

/* The client has said all it will say. */
static void end_politely(void)
{
    shutdown(client.fd, SHUT_WR);
    for (int i = 0; i < TURNS_MAX && !client.has_ended; i++) {
        post_what_waits();
        loop_turn(&edge.loop, i < 20 ? 0 : 1);
        take_output();
    }
    assert(client.has_ended);
}

/* The first byte chooses how requests are served, the second how the bytes are cut. */
void fuzz_http1_session(const uint8_t *data, size_t bytes)
{
    static bool has_begun;
    fuzz_input in = {data, bytes};
    if (!has_begun)
        begin();
    has_begun = true;
    memset(&client, 0, sizeof client);
    client.options = fuzz_take_byte(&in);
    size_t step = 1 + (size_t)fuzz_take_byte(&in) * 7, whole = in.bytes;
    bool is_http2 = whole > 0 && in.data[0] == 'P' && whole > 2 && in.data[2] == 'I';
    client.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failure = connect(client.fd, (struct sockaddr *)&edge.name, edge.name_bytes);
    assert(failure == 0);
    for (int stalls = 0; in.bytes > 0 && !client.takes_nothing && stalls < 50; stalls++) {
        size_t before = in.bytes;
        send_piece(&in, step);
        stalls = in.bytes < before ? 0 : stalls;
        if ((client.options & DRAINS) && in.bytes < whole / 2)
            loop_command(&edge.loop, LOOP_COMMAND_SHUTDOWN);
        turn(2, !(client.options & READS_LATE));
        if (in.bytes < whole / 2)
            answer_what_waits();
    }
    answer_what_waits();
    if (!(client.options & LEAVES_EARLY))
        end_politely();
    close(client.fd);
    for (int i = 0; i < TURNS_MAX && atomic_load(&edge.shared.service->connections) > 0; i++) {
        post_what_waits();
        loop_turn(&edge.loop, i < 20 ? 0 : 1);
    }
    assert(atomic_load(&edge.shared.service->connections) == 0);
    assert(service_open_requests(edge.shared.service) == 0);
    int answered = is_http2 ? -1 : check_output();
    assert(answered <= client.handled);
    assert(answered < 0 || (client.options & LEAVES_EARLY) || answered == client.handled);
    edge.loop.context.shutdown_requested = 0;
    text_buffer_dispose(&client.output);
}
