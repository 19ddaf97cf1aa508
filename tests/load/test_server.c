/* load_test_server [--port N] [--delay D] [--stall LENGTH:PERIOD] [--fail CODE:SHARE] [--close
 * SHARE]
 *                  [--timing] [--wrong SHARE] [--realtime]
 * Prints "port N" once it listens, and on SIGTERM one line of JSON with the delays that it really
 * made, as percentiles 0 to 100 in ms, from the kernel's time stamp of a request on: what a client
 * should have measured, less the way between them. D: constant:5ms | uniform:2ms:20ms |
 * exponential:5ms | bimodal:2ms:20ms:0.05 | none */
#include "test_server.h"
#include "loadtest/wire/memory.h"

#include "base/clock.h"
#include "base/histogram.h"
#include "loadtest/wire/receive_stamp.h"
#include "loadtest/workload/quantity.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static struct {
    char delay[16];
    double a_ns, b_ns, share;
    uint64_t stall_ns, stall_period_ns, stall_next_ns;
    int fail_code;
    double fail_share, close_share, wrong_share;
    bool timing;
} settings;

static histogram made;
static uint64_t taken, drawn, arrived_ns; /* of the bytes being handled */
static server_request **heap;             /* by intended_ns */
static size_t heap_count, heap_capacity;
static volatile sig_atomic_t over;
static int epoll_fd;

static const char metadata[] =
    "{\"name\":\"echo\",\"versions\":[\"1\"],\"platform\":\"test\",\"inputs\":[{\"name\":"
    "\"input_ids\",\"datatype\":\"INT64\",\"shape\":[-1,-1]},{\"name\":\"attention_mask\","
    "\"datatype\":\"INT64\",\"shape\":[-1,-1]}],\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\","
    "\"shape\":[-1,2]}]}";
static const char index_of_models[] = "[{\"name\":\"echo\",\"version\":\"1\",\"state\":\"READY\"}]";
static const char infer[] =
    "{\"model_name\":\"echo\",\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1,2],"
    "\"data\":[0.25,0.75]}]}";
static const char wrong[] =
    "{\"model_name\":\"echo\",\"outputs\":[{\"name\":\"y\",\"datatype\":\"FP32\",\"shape\":[1,2],"
    "\"data\":[0.25,0.80]}]}";
static const char tensorflow_metadata[] =
    "{\"model_spec\":{\"name\":\"half\"},\"metadata\":{\"signature_def\":{\"signature_def\":"
    "{\"serving_default\":{\"inputs\":{\"x\":{\"dtype\":\"DT_FLOAT\",\"tensor_shape\":{\"dim\":["
    "{\"size\":\"-1\",\"name\":\"\"},{\"size\":\"3\",\"name\":\"\"}],\"unknown_rank\":false},"
    "\"name\":\"x:0\"}},\"outputs\":{}}}}}}";
static const char predictions[] = "{\"predictions\":[[0.5]]}";
static const char failure[] = "{\"error\":\"injected\"}";
static const char missing[] = "{\"error\":\"no such model\"}";

/* Low-discrepancy draws (van der Corput, base 2): quantiles come out as specified even for few. */
static double next_unit(void)
{
    uint64_t n = ++drawn;
    double value = 0, digit = 0.5;
    for (; n != 0; n >>= 1, digit /= 2)
        if (n & 1)
            value += digit;
    return value;
}

static double draw_delay_ns(void)
{
    double u = next_unit();
    switch (settings.delay[0]) {
    case 'u':
        return settings.a_ns + u * (settings.b_ns - settings.a_ns);
    case 'e':
        return -log1p(-u) * settings.a_ns;
    case 'b':
        return u < settings.share ? settings.b_ns : settings.a_ns;
    default:
        return settings.a_ns;
    }
}

const char *server_timing_of(const server_request *r)
{
    static char text[64];
    double ms = (double)(r->intended_ns - r->received_ns) / 1e6;
    snprintf(text, sizeof text, "queue;dur=%.3f, execute;dur=%.3f", ms / 4, ms * 3 / 4);
    return settings.timing ? text : "";
}

static void heap_push(server_request *r)
{
    if (heap_count == heap_capacity) {
        heap_capacity = heap_capacity ? heap_capacity * 2 : 256;
        heap = memory_resize(heap, heap_capacity, sizeof *heap);
    }
    size_t i = heap_count++;
    for (; i > 0 && heap[(i - 1) / 2]->intended_ns > r->intended_ns; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = r;
}

static server_request *heap_pop(void)
{
    server_request *top = heap[0], *last = heap[--heap_count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= heap_count)
            break;
        if (child + 1 < heap_count && heap[child + 1]->intended_ns < heap[child]->intended_ns)
            child++;
        if (heap[child]->intended_ns >= last->intended_ns)
            break;
        heap[i] = heap[child];
        i = child;
    }
    if (heap_count != 0)
        heap[i] = last;
    return top;
}

static bool share_now(double share, uint64_t n)
{
    return share > 0 && floor((double)n * share) != floor((double)(n - 1) * share);
}

static void set_body(server_request *r, const char *text)
{
    r->body = text;
    r->body_bytes = strlen(text);
}

void server_take(server_connection *c, int32_t stream, const char *method, const char *path,
                 const char *body, size_t body_bytes)
{
    (void)body;
    (void)body_bytes;
    server_request *r = memory_allocate(1, sizeof *r);
    *r = (server_request){.connection = c,
                          .received_ns = arrived_ns,
                          .code = 200,
                          .stream = stream,
                          .next = c->requests};
    c->requests = r;
    r->intended_ns = r->received_ns;
    if (strcmp(path, "/v2/models/echo") == 0) {
        set_body(r, metadata);
    } else if (strcmp(path, "/v2/repository/index") == 0) {
        set_body(r, index_of_models);
    } else if (strcmp(path, "/v1/models/half/metadata") == 0) {
        set_body(r, tensorflow_metadata);
    } else if (strcmp(method, "GET") == 0 && strncmp(path, "/v", 2) == 0) {
        r->code = 404;
        set_body(r, missing);
    } else {
        taken++;
        r->intended_ns += (uint64_t)draw_delay_ns();
        set_body(r, strstr(path, ":predict")                 ? predictions
                    : share_now(settings.wrong_share, taken) ? wrong
                                                             : infer);
        if (share_now(settings.fail_share, taken)) {
            r->code = settings.fail_code;
            r->intended_ns = r->received_ns;
            set_body(r, failure);
        }
        r->close = share_now(settings.close_share, taken);
    }
    heap_push(r);
}

static void send_out(server_connection *c)
{
    while (!c->dead && c->out_sent < c->out.bytes) {
        ssize_t n =
            send(c->fd, c->out.data + c->out_sent, c->out.bytes - c->out_sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno != EAGAIN)
                c->dead = true;
            return;
        }
        c->out_sent += (size_t)n;
    }
    text_buffer_clear(&c->out);
    c->out_sent = 0;
    if (c->closing)
        c->dead = true;
}

static void unlink_request(server_request *r)
{
    server_request **link = &r->connection->requests;
    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
}

static void answer_due(void)
{
    while (heap_count != 0 && heap[0]->intended_ns <= clock_now_ns()) {
        server_request *r = heap_pop();
        server_connection *c = r->connection;
        if (c != NULL) {
            unlink_request(r);
            if (r->code == 200 && r->intended_ns != r->received_ns)
                histogram_record(&made, clock_now_ns() - r->received_ns);
            if (c->http2) {
                http2_answer(c, r);
                http2_flush(c);
            } else {
                const char *timing = server_timing_of(r);
                text_buffer_format(&c->out,
                                   "HTTP/1.1 %d x\r\ncontent-type: application/json\r\n"
                                   "content-length: %zu\r\n%s%s%s%s\r\n",
                                   r->code, r->body_bytes, timing[0] ? "server-timing: " : "",
                                   timing, timing[0] ? "\r\n" : "",
                                   r->close ? "connection: close\r\n" : "");
                text_buffer_append(&c->out, r->body, r->body_bytes);
                c->closing |= r->close;
            }
            send_out(c);
            if (c->dead)
                shutdown(c->fd, SHUT_RDWR); /* its event disposes of it */
        }
        free(r);
    }
}

/* One HTTP/1.1 request from c->in; false if it is not whole. */
static bool take_http1(server_connection *c)
{
    if (c->in.bytes == 0)
        return false;
    const char *text = text_buffer_string(&c->in), *end = strstr(text, "\r\n\r\n");
    if (end == NULL)
        return false;
    size_t head = (size_t)(end - text) + 4, body = 0;
    const char *length = strcasestr(text, "\r\ncontent-length:");
    if (length != NULL && length < end)
        body = strtoul(length + 17, NULL, 10);
    if (c->in.bytes < head + body)
        return false;
    char method[16] = "", path[256] = "";
    sscanf(text, "%15s %255s", method, path);
    server_take(c, 0, method, path, text + head, body);
    memmove(c->in.data, c->in.data + head + body, c->in.bytes - head - body);
    c->in.bytes -= head + body;
    return true;
}

static void handle_bytes(server_connection *c, const char *data, size_t bytes)
{
    if (!c->sniffed) {
        text_buffer_append(&c->in, data, bytes);
        if (c->in.bytes < 4)
            return;
        c->sniffed = true;
        c->http2 = memcmp(c->in.data, "PRI ", 4) == 0;
        if (c->http2) {
            http2_start(c);
            c->dead = !http2_receive(c, c->in.data, c->in.bytes);
            http2_flush(c);
            send_out(c);
            return;
        }
    } else if (c->http2) {
        c->dead = !http2_receive(c, data, bytes);
        http2_flush(c);
        send_out(c);
        return;
    } else {
        text_buffer_append(&c->in, data, bytes);
    }
    while (take_http1(c)) {
    }
}

static void dispose(server_connection *c)
{
    for (server_request *r = c->requests; r != NULL; r = r->next)
        r->connection = NULL;
    if (c->http2)
        http2_dispose(c);
    close(c->fd);
    text_buffer_dispose(&c->in);
    text_buffer_dispose(&c->out);
    free(c);
}

static void handle(server_connection *c)
{
    char data[65536];
    for (;;) {
        _Alignas(struct cmsghdr) uint8_t control[RECEIVE_STAMP_CONTROL_BYTES] = {0};
        struct iovec part = {.iov_base = data, .iov_len = sizeof data};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof control};
        ssize_t n = recvmsg(c->fd, &message, 0);
        if (n <= 0) {
            c->dead |= n == 0 || errno != EAGAIN;
            break;
        }
        arrived_ns = receive_stamp_ns(&message);
        handle_bytes(c, data, (size_t)n);
    }
    if (!c->dead)
        send_out(c);
    if (c->dead)
        dispose(c);
}

static void accept_all(int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        receive_stamp_enable(fd);
        server_connection *c = memory_allocate(1, sizeof *c);
        c->fd = fd;
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.ptr = c};
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
}

static void stall_if_due(void)
{
    if (settings.stall_ns == 0 || taken == 0)
        return;
    uint64_t now_ns = clock_now_ns();
    if (settings.stall_next_ns == 0) /* the first stall is half a period after the first request */
        settings.stall_next_ns = now_ns + settings.stall_period_ns / 2;
    if (now_ns < settings.stall_next_ns)
        return;
    settings.stall_next_ns += settings.stall_period_ns;
    struct timespec whole = {.tv_sec = (time_t)(settings.stall_ns / 1000000000u),
                             .tv_nsec = (long)(settings.stall_ns % 1000000000u)};
    nanosleep(&whole, NULL);
}

static void serve(int listener)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[64];
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
    while (!over) {
        uint64_t now_ns = clock_now_ns(), wait_ns = 50000000u;
        if (heap_count != 0)
            wait_ns = heap[0]->intended_ns > now_ns ? heap[0]->intended_ns - now_ns : 0;
        if (wait_ns > 50000000u)
            wait_ns = 50000000u;
        struct timespec timeout = {.tv_nsec = (long)wait_ns};
        int count = epoll_pwait2(epoll_fd, events, 64, &timeout, NULL);
        stall_if_due();
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL)
                accept_all(listener);
            else
                handle(events[i].data.ptr);
        }
        answer_due();
    }
}

static void on_term(int number)
{
    (void)number;
    over = 1;
}

static void parse_pair(const char *text, double *a, double *b)
{
    char *end;
    *a = strtod(text, &end);
    *b = *end == ':' ? strtod(end + 1, NULL) : 1;
}

static bool durations(const char *text, uint64_t *a, uint64_t *b)
{
    char first[32];
    size_t bytes = strcspn(text, ":");
    snprintf(first, sizeof first, "%.*s", (int)bytes, text);
    return quantity_duration(first, a) == STATUS_OK &&
           (text[bytes] == 0 || quantity_duration(text + bytes + 1, b) == STATUS_OK);
}

static bool parse_delay(const char *text)
{
    size_t bytes = strcspn(text, ":");
    snprintf(settings.delay, sizeof settings.delay, "%.*s", (int)bytes, text);
    if (text[bytes] == 0)
        return true;
    char copy[64];
    snprintf(copy, sizeof copy, "%s", text + bytes + 1);
    char *last = strrchr(copy, ':');
    if (settings.delay[0] == 'b' && last != NULL) {
        settings.share = strtod(last + 1, NULL);
        *last = 0;
    }
    uint64_t a = 0, b = 0;
    bool good = durations(copy, &a, &b);
    settings.a_ns = (double)a;
    settings.b_ns = (double)b;
    return good;
}

static bool parse(int argc, char **argv, int *port)
{
    double code;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--timing") == 0) {
            settings.timing = true;
            continue;
        }
        if (strcmp(argv[i], "--realtime") == 0) {
            sched_setscheduler(0, SCHED_RR, &(struct sched_param){1});
            continue;
        }
        i++;
        if (strcmp(argv[i - 1], "--port") == 0) {
            *port = atoi(value);
        } else if (strcmp(argv[i - 1], "--delay") == 0) {
            if (!parse_delay(value))
                return false;
        } else if (strcmp(argv[i - 1], "--stall") == 0) {
            if (!durations(value, &settings.stall_ns, &settings.stall_period_ns))
                return false;
        } else if (strcmp(argv[i - 1], "--fail") == 0) {
            parse_pair(value, &code, &settings.fail_share);
            settings.fail_code = (int)code;
        } else if (strcmp(argv[i - 1], "--close") == 0) {
            settings.close_share = strtod(value, NULL);
        } else if (strcmp(argv[i - 1], "--wrong") == 0) {
            settings.wrong_share = strtod(value, NULL);
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    int port = 0;
    if (!parse(argc, argv, &port)) {
        fprintf(stderr, "load_test_server: wrong usage: %s\n", status_message());
        return 2;
    }
    prctl(PR_SET_TIMERSLACK, 1UL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (struct sockaddr *)&address, bytes) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &bytes) != 0) {
        perror("listen");
        return 1;
    }
    printf("port %d\n", ntohs(address.sin_port));
    fflush(stdout);
    serve(listener);
    printf("{\"requests\":%llu,\"percentiles\":[", (unsigned long long)taken);
    for (int percent = 0; percent <= 100; percent++)
        printf("%s%.6f", percent ? "," : "",
               (double)histogram_quantile(&made, percent / 100.0) / 1e6);
    puts("]}");
    return 0;
}
