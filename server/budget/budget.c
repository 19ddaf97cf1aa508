#include "server/budget/budget.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define CAPACITY_FIRST 256

/* Sixteen bytes that tell addresses apart: IPv4 as in ::ffff:1.2.3.4. */
typedef struct address_key {
    uint64_t words[2];
} address_key;

struct budget_address {
    budget_address *next; /* of its chain */
    address_key key;
    int accounts;
    _Atomic size_t bytes; /* reserved */
};

const char *budget_verdict_name(budget_verdict v)
{
    static const char *const names[BUDGET_VERDICTS] = {"granted", "connection", "address",
                                                       "process"};
    assert((unsigned)v < BUDGET_VERDICTS);
    return names[v];
}

status budget_init(budget *b, const budget_limits *limits)
{
    *b = (budget){.limits = *limits, .capacity = CAPACITY_FIRST};
    b->addresses = calloc(b->capacity, sizeof *b->addresses);
    if (b->addresses == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for client addresses");
    /* Without randomness: chains that an enemy makes long are no longer than there are
     * connections. */
    if (getrandom(&b->seed, sizeof b->seed, GRND_NONBLOCK) != sizeof b->seed)
        b->seed = 0x9e3779b97f4a7c15;
    pthread_mutex_init(&b->lock, NULL);
    return STATUS_OK;
}

void budget_dispose(budget *b)
{
    if (b->addresses == NULL)
        return;
    assert(b->address_count == 0);
    free(b->addresses);
    b->addresses = NULL;
    pthread_mutex_destroy(&b->lock);
}

static address_key key_of(const struct sockaddr *peer)
{
    uint8_t bytes[16] = {0};
    if (peer != NULL && peer->sa_family == AF_INET) {
        bytes[10] = bytes[11] = 0xff;
        memcpy(bytes + 12, &((const struct sockaddr_in *)peer)->sin_addr, 4);
    } else if (peer != NULL && peer->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)peer)->sin6_addr;
        memcpy(bytes, a, IN6_IS_ADDR_V4MAPPED(a) ? 16 : 8);
    }
    address_key key;
    memcpy(key.words, bytes, sizeof bytes);
    return key;
}

/* SplitMix64's finaliser (Steele, Lea, Flood 2014) over both words. */
static size_t place_of(const budget *b, address_key key)
{
    uint64_t h = b->seed;
    for (int i = 0; i < 2; i++) {
        h ^= key.words[i];
        h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
        h = (h ^ h >> 27) * 0x94d049bb133111eb;
        h ^= h >> 31;
    }
    return (size_t)h & (b->capacity - 1);
}

static void grow(budget *b)
{
    size_t before = b->capacity;
    budget_address **larger = calloc(2 * before, sizeof *larger);
    if (larger == NULL)
        return; /* longer chains */
    budget_address **old = b->addresses;
    b->addresses = larger;
    b->capacity = 2 * before;
    for (size_t i = 0; i < before; i++) {
        for (budget_address *at = old[i], *next; at != NULL; at = next) {
            next = at->next;
            size_t place = place_of(b, at->key);
            at->next = larger[place];
            larger[place] = at;
        }
    }
    free(old);
}

static budget_address *find_or_add(budget *b, address_key key)
{
    budget_address *at = b->addresses[place_of(b, key)];
    while (at != NULL && memcmp(&at->key, &key, sizeof key) != 0)
        at = at->next;
    if (at != NULL)
        return at;
    if (b->address_count >= b->capacity)
        grow(b);
    at = calloc(1, sizeof *at);
    if (at == NULL)
        return NULL;
    size_t place = place_of(b, key);
    at->key = key;
    at->next = b->addresses[place];
    b->addresses[place] = at;
    b->address_count++;
    return at;
}

/* Nobody uses it. */
static void drop(budget *b, budget_address *address)
{
    budget_address **at = &b->addresses[place_of(b, address->key)];
    while (*at != address)
        at = &(*at)->next;
    *at = address->next;
    b->address_count--;
    free(address);
}

status budget_open(budget *b, budget_account *a, const struct sockaddr *peer)
{
    status failure = STATUS_OK;
    pthread_mutex_lock(&b->lock);
    budget_address *address = find_or_add(b, key_of(peer));
    if (address == NULL)
        failure = status_fail(STATUS_OUT_OF_MEMORY, "no memory for a client's address");
    else if (address->accounts >= b->limits.address_accounts_max)
        failure =
            status_fail(STATUS_RESOURCE_EXHAUSTED,
                        "an address has %d connections, which is the limit", address->accounts);
    else
        address->accounts++;
    pthread_mutex_unlock(&b->lock);
    if (!failure)
        *a = (budget_account){.of = b, .address = address};
    return failure;
}

void budget_close(budget_account *a)
{
    budget *b = a->of;
    if (b == NULL)
        return;
    a->bytes = 0;
    budget_trim(a);
    pthread_mutex_lock(&b->lock);
    if (--a->address->accounts == 0)
        drop(b, a->address);
    pthread_mutex_unlock(&b->lock);
    *a = (budget_account){0};
}

void budget_lend(const budget_account *of, budget_account *loan)
{
    *loan = (budget_account){.of = of->of, .address = of->address};
}

void budget_return(budget_account *loan)
{
    loan->bytes = 0;
    budget_trim(loan);
}

static size_t in_steps(size_t bytes)
{
    return (bytes + BUDGET_STEP_BYTES - 1) / BUDGET_STEP_BYTES * BUDGET_STEP_BYTES;
}

static bool take(_Atomic size_t *from, size_t bytes, size_t most, bool is_forced)
{
    size_t before = atomic_fetch_add_explicit(from, bytes, memory_order_relaxed);
    if (is_forced || (before <= most && bytes <= most - before))
        return true;
    atomic_fetch_sub_explicit(from, bytes, memory_order_relaxed);
    return false;
}

budget_verdict budget_reserve(budget_account *a, size_t bytes, bool is_forced)
{
    budget *b = a->of;
    if (b == NULL) {
        a->bytes += bytes;
        a->reserved = a->bytes;
        return BUDGET_GRANTED;
    }
    size_t wanted = a->bytes + bytes, most = b->limits.connection_bytes_max;
    size_t more = in_steps(wanted) - a->reserved;
    budget_verdict verdict = BUDGET_GRANTED;
    if (!is_forced && (wanted < bytes || wanted > most))
        verdict = BUDGET_CONNECTION_FULL;
    else if (!take(&b->bytes, more, b->limits.bytes_max, is_forced))
        verdict = BUDGET_PROCESS_FULL;
    else if (!take(&a->address->bytes, more, b->limits.address_bytes_max, is_forced)) {
        atomic_fetch_sub_explicit(&b->bytes, more, memory_order_relaxed);
        verdict = BUDGET_ADDRESS_FULL;
    }
    if (verdict != BUDGET_GRANTED) {
        atomic_fetch_add_explicit(&b->refusals[verdict], 1, memory_order_relaxed);
        return verdict;
    }
    a->reserved += more;
    a->bytes = wanted;
    return BUDGET_GRANTED;
}

void budget_trim(budget_account *a)
{
    budget *b = a->of;
    size_t keep = in_steps(a->bytes), less = a->reserved - keep;
    a->reserved = keep;
    if (b == NULL || less == 0)
        return;
    atomic_fetch_sub_explicit(&a->address->bytes, less, memory_order_relaxed);
    atomic_fetch_sub_explicit(&b->bytes, less, memory_order_relaxed);
}

static bool has_room(size_t held, size_t bytes, size_t most)
{
    return held <= most && bytes <= most - held;
}

budget_verdict budget_ask(const budget_account *a, size_t bytes)
{
    budget *b = a->of;
    if (b == NULL || a->reserved - a->bytes >= bytes)
        return BUDGET_GRANTED;
    const budget_limits *l = &b->limits;
    size_t process = atomic_load_explicit(&b->bytes, memory_order_relaxed);
    size_t address = atomic_load_explicit(&a->address->bytes, memory_order_relaxed);
    budget_verdict verdict = !has_room(a->bytes, bytes, l->connection_bytes_max)
                                 ? BUDGET_CONNECTION_FULL
                             : !has_room(process, bytes, l->bytes_max)         ? BUDGET_PROCESS_FULL
                             : !has_room(address, bytes, l->address_bytes_max) ? BUDGET_ADDRESS_FULL
                                                                               : BUDGET_GRANTED;
    if (verdict != BUDGET_GRANTED)
        atomic_fetch_add_explicit(&b->refusals[verdict], 1, memory_order_relaxed);
    return verdict;
}

bool budget_take(budget *b, size_t bytes)
{
    bool is_taken = take(&b->bytes, bytes, b->limits.bytes_max, false);
    if (!is_taken)
        atomic_fetch_add_explicit(&b->refusals[BUDGET_PROCESS_FULL], 1, memory_order_relaxed);
    return is_taken;
}

void budget_give(budget *b, size_t bytes)
{
    atomic_fetch_sub_explicit(&b->bytes, bytes, memory_order_relaxed);
}

size_t budget_excess(const budget *b)
{
    size_t bytes = atomic_load_explicit(&b->bytes, memory_order_relaxed);
    size_t enough = b->limits.bytes_max / 8 * 7;
    return bytes > enough ? bytes - enough : 0;
}
