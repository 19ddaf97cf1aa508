/* Sessions of server/http2/session/ on a network made of chance: bytes arrive in pieces of any
 * size, late, interleaved with those of other connections, or not at all after some byte. Beside
 * them a model says what must be answered.
 *
 *   netsim_http2 [SEEDS [FIRST]]
 *
 * A seed is one run; the seed of a run that fails is printed, and that seed alone repeats it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/xorshift.h"
#include "tests/unit/server/http2/session/peer.h"

#define LINKS 3
#define REQUESTS_MAX 40
#define BODY_BYTES_MAX 100000
#define QUEUE_BYTES_MAX 40000 /* that wait in one direction */
#define STEPS_MAX 400000
#define STALL_STEPS_MAX 200
#define CANCELS_MAX 5 /* more would be abuse */

/* One direction of a connection. */
typedef struct flow {
    text_buffer bytes;
    size_t at;      /* of `bytes`: delivered */
    size_t carried; /* delivered, all in all */
    size_t cut_at;  /* the connection breaks after so many bytes */
    int stalled;    /* steps */
} flow;

typedef struct asked {
    int32_t id;
    char path[40];
    size_t body_bytes, sent_bytes;
    size_t consumed_bytes; /* by the server */
    bool is_cancelled, is_answered;
} asked;

typedef struct link {
    peer p;
    flow up, down;
    asked requests[REQUESTS_MAX];
    int request_count, wanted, cancels;
    bool is_cut, is_draining;
    uint64_t *chance;
} link_state;

static const char *wrong; /* what a run found */

static void expect(bool is_true, const char *what)
{
    if (!is_true && wrong == NULL)
        wrong = what;
}

static size_t below(link_state *l, size_t bound)
{
    return bound ? (size_t)(xorshift_next(l->chance) % bound) : 0;
}

/* Byte `at` of the body of a stream: others have others. */
static char body_byte(int32_t id, size_t at)
{
    return (char)((size_t)id * 131 + at * 7 + at / 251);
}

static ssize_t give_body(nghttp2_session *client, int32_t id, uint8_t *to, size_t most,
                         uint32_t *flags, nghttp2_data_source *source, void *user_data)
{
    asked *a = source->ptr;
    size_t left = a->body_bytes - a->sent_bytes, n = left < most ? left : most;
    (void)client, (void)user_data;
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)body_byte(id, a->sent_bytes + i);
    a->sent_bytes += n;
    if (n == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void ask(link_state *l)
{
    asked *a = &l->requests[l->request_count];
    if (l->request_count == l->wanted || l->p.goaways > 0)
        return;
    l->request_count++;
    snprintf(a->path, sizeof a->path, "/%zu", below(l, 1000000));
    a->body_bytes = below(l, 3) == 0 ? 0 : below(l, 1 + below(l, BODY_BYTES_MAX));
    const char *method = a->body_bytes ? "POST" : "GET";
#define NV(n, v) {(uint8_t *)n, (uint8_t *)(uintptr_t)(v), sizeof n - 1, strlen(v), 0}
    nghttp2_nv nv[] = {NV(":method", method), NV(":scheme", "http"), NV(":authority", "a"),
                       NV(":path", a->path)};
#undef NV
    nghttp2_data_provider provider = {.source.ptr = a, .read_callback = give_body};
    a->id =
        nghttp2_submit_request(l->p.client, NULL, nv, 4, a->body_bytes ? &provider : NULL, NULL);
    expect(a->id > 0, "the client cannot ask");
}

/* Takes a piece off the flow: how many bytes at *from. */
static size_t take(link_state *l, flow *f, const char **from)
{
    size_t n = 1 + below(l, below(l, 4) ? 20000 : 20), left = f->bytes.bytes - f->at;
    n = n < left ? n : left;
    if (f->carried + n >= f->cut_at) {
        n = f->cut_at - f->carried;
        l->is_cut = true;
    }
    *from = f->bytes.data + f->at;
    f->at += n;
    f->carried += n;
    return n;
}

static void forget_taken(flow *f)
{
    if (f->at == f->bytes.bytes) {
        text_buffer_clear(&f->bytes);
        f->at = 0;
    }
}

static void deliver_up(link_state *l)
{
    const char *from;
    size_t n = take(l, &l->up, &from);
    if (n > 0)
        peer_inject(&l->p, from, n);
    expect(l->p.failure == STATUS_OK, "the server refuses what a right client sends");
    forget_taken(&l->up);
}

static void deliver_down(link_state *l)
{
    const char *from;
    size_t n = take(l, &l->down, &from);
    if (n > 0)
        expect(nghttp2_session_mem_recv(l->p.client, (const uint8_t *)from, n) == (ssize_t)n,
               "the client refuses what the server sends");
    forget_taken(&l->down);
}

static void client_writes(link_state *l)
{
    const uint8_t *data;
    if (l->up.bytes.bytes - l->up.at > QUEUE_BYTES_MAX)
        return;
    ssize_t n = nghttp2_session_mem_send(l->p.client, &data);
    if (n > 0)
        text_buffer_append(&l->up.bytes, data, (size_t)n);
}

static void server_writes(link_state *l)
{
    if (l->down.bytes.bytes - l->down.at > QUEUE_BYTES_MAX)
        return;
    expect(http2_session_write(l->p.server, &l->down.bytes, 1 + below(l, 16384)) == STATUS_OK,
           "the server cannot write");
}

static asked *any(link_state *l)
{
    return l->request_count ? &l->requests[below(l, (size_t)l->request_count)] : NULL;
}

static void answer(link_state *l)
{
    asked *a = any(l);
    peer_request *r = a != NULL ? peer_find(&l->p, a->id) : NULL;
    if (r == NULL || r->stream == NULL || !r->is_ended || a->is_answered)
        return;
    expect(r->body.bytes == a->body_bytes, "a body of another length arrived");
    expect(strcmp(r->path, a->path) == 0, "another path arrived");
    a->is_answered = true;
    peer_respond(&l->p, r);
}

static void consume(link_state *l)
{
    asked *a = any(l);
    peer_request *r = a != NULL ? peer_find(&l->p, a->id) : NULL;
    if (r == NULL || r->stream == NULL || a->is_answered)
        return;
    http2_session_consume(l->p.server, r->stream, r->body.bytes - a->consumed_bytes);
    a->consumed_bytes = r->body.bytes;
}

/* What happens seldom. */
static void disturb(link_state *l)
{
    asked *a = any(l);
    switch (below(l, 8)) {
    case 0:
        (below(l, 2) ? &l->up : &l->down)->stalled = (int)below(l, STALL_STEPS_MAX);
        break;
    case 1:
        if (a == NULL || a->is_cancelled || l->cancels == CANCELS_MAX)
            break;
        a->is_cancelled = true;
        l->cancels++;
        nghttp2_submit_rst_stream(l->p.client, NGHTTP2_FLAG_NONE, a->id, NGHTTP2_CANCEL);
        break;
    case 2:
        if (below(l, 20) == 0)
            nghttp2_submit_ping(l->p.client, NGHTTP2_FLAG_NONE, NULL);
        break;
    case 3:
        if (below(l, 100) == 0 || l->is_draining) {
            l->is_draining = true;
            http2_session_drain(l->p.server);
        }
        break;
    default:
        l->p.is_pausing = !l->p.is_pausing;
    }
}

static void step(link_state *l)
{
    l->p.now_ns += below(l, 2000000);
    switch (below(l, 8)) {
    case 0:
        ask(l);
        break;
    case 1:
        client_writes(l);
        break;
    case 2:
        if (l->up.stalled-- <= 0)
            deliver_up(l);
        break;
    case 3:
        server_writes(l);
        break;
    case 4:
        if (l->down.stalled-- <= 0)
            deliver_down(l);
        break;
    case 5:
        answer(l);
        break;
    case 6:
        consume(l);
        break;
    default:
        if (below(l, 10) == 0)
            disturb(l);
    }
}

/* Whether the client need not be answered. */
static bool is_excused(const link_state *l, const asked *a)
{
    bool is_beyond = l->p.goaways > 0 && a->id > l->p.last_stream;
    return l->is_cut || a->is_cancelled || is_beyond;
}

static bool is_over(link_state *l)
{
    if (l->is_cut)
        return true;
    if (l->request_count < l->wanted && l->p.goaways == 0)
        return false;
    for (int i = 0; i < l->request_count; i++)
        if (!is_excused(l, &l->requests[i]) && !peer_find(&l->p, l->requests[i].id)->is_done)
            return false;
    return true;
}

static void check_answer(const link_state *l, const asked *a, const peer_request *r)
{
    size_t path_bytes = strlen(a->path);
    bool is_whole = r->is_done && r->error == 0;
    expect(is_whole || is_excused(l, a), "a request was not answered");
    expect(!is_whole || (r->status == 200 && r->answer.bytes == path_bytes + a->body_bytes),
           "an answer of another length");
    expect(r->answer.bytes <= path_bytes + a->body_bytes, "an answer that is too long");
    for (size_t i = 0; i < r->answer.bytes; i++)
        expect(r->answer.data[i] ==
                   (i < path_bytes ? a->path[i] : body_byte(a->id, i - path_bytes)),
               "an answer to another request");
}

static void begin(link_state *l, uint64_t *chance, bool may_break)
{
    memset(l, 0, sizeof *l);
    l->chance = chance;
    peer_init(&l->p);
    l->p.is_holding = true;
    l->p.is_consuming = false;
    l->p.limits.stream_window_bytes = (uint32_t)(20000 + below(l, 300000));
    l->wanted = 1 + (int)below(l, REQUESTS_MAX);
    l->up.cut_at = may_break && below(l, 3) == 0 ? below(l, 300000) : SIZE_MAX;
    l->down.cut_at = may_break && below(l, 3) == 0 ? below(l, 300000) : SIZE_MAX;
    peer_start(&l->p);
}

static void end(link_state *l)
{
    /* A handler's last call comes for every stream, and peer.c asserts that it comes once. */
    for (int i = 0; i < l->request_count; i++)
        check_answer(l, &l->requests[i], peer_find(&l->p, l->requests[i].id));
    peer_dispose(&l->p);
    for (int i = 0; i < l->p.request_count; i++)
        expect(l->p.requests[i].stream == NULL, "a stream was not closed");
    text_buffer_dispose(&l->up.bytes);
    text_buffer_dispose(&l->down.bytes);
}

static void run(uint64_t seed, bool may_break)
{
    static link_state links[LINKS];
    uint64_t chance = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    int steps = 0, open = LINKS;
    for (int i = 0; i < LINKS; i++)
        begin(&links[i], &chance, may_break);
    while (open > 0 && wrong == NULL && steps++ < STEPS_MAX) {
        open = 0;
        link_state *l = &links[xorshift_next(&chance) % LINKS];
        if (!l->is_cut)
            step(l);
        for (int i = 0; i < LINKS; i++)
            open += !is_over(&links[i]);
    }
    expect(open == 0, "nothing moves any more");
    for (int i = 0; i < LINKS; i++)
        end(&links[i]);
}

/* The same short session, broken after each byte of either direction. Returns how many bytes it
 * has in that direction. */
static size_t run_cut(bool is_up, size_t cut_at)
{
    static link_state l;
    uint64_t chance = 12345;
    begin(&l, &chance, false);
    l.wanted = 3;
    *(is_up ? &l.up.cut_at : &l.down.cut_at) = cut_at;
    for (int steps = 0; !is_over(&l) && wrong == NULL && steps < STEPS_MAX; steps++)
        step(&l);
    size_t carried = is_up ? l.up.carried : l.down.carried;
    end(&l);
    return carried;
}

static bool report(const char *what, uint64_t number)
{
    if (wrong == NULL)
        return true;
    printf("%s %llu: %s\n", what, (unsigned long long)number, wrong);
    wrong = NULL;
    return false;
}

int main(int count, char **arguments)
{
    uint64_t seeds = count > 1 ? strtoull(arguments[1], NULL, 10) : 100;
    uint64_t first = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
    int passed = 0, failed = 0;
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        run(seed, seed % 2 == 0);
        bool is_right = report("seed", seed);
        passed += is_right;
        failed += !is_right;
    }
    for (int is_up = 0; is_up < 2; is_up++) {
        size_t bytes = run_cut(is_up, SIZE_MAX), step_bytes = bytes > 2000 ? bytes / 2000 : 1;
        for (size_t at = 0; at < bytes; at += step_bytes) {
            run_cut(is_up, at);
            bool is_right = report(is_up ? "cut to the server at" : "cut to the client at", at);
            passed += is_right;
            failed += !is_right;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
