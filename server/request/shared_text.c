#include "server/request/shared_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PART 20             /* one in so many nanoseconds of a loop's time */
#define AT_ONCE_NS 50000000 /* before texts are shared */
#define DEBT_NS 50000000    /* what is counted beyond it, at most: a second to pay back */
#define AGE_NS_MAX 1000000000

static bool is_same(const shared_text_key *a, const shared_text_key *b)
{
    return a->kind == b->kind && a->about == b->about && a->coding == b->coding;
}

const shared_text *shared_texts_find(shared_texts *all, shared_text_key key, uint64_t now_ns)
{
    int64_t paid_ns = (int64_t)((now_ns - all->counted_ns) / PART);
    all->spent_ns = all->spent_ns > paid_ns ? all->spent_ns - paid_ns : 0;
    all->counted_ns = now_ns;
    if (all->spent_ns < AT_ONCE_NS)
        return NULL;
    for (int i = 0; i < SHARED_TEXTS_MAX; i++) {
        const shared_text *t = &all->texts[i];
        if (t->made_ns != 0 && is_same(&t->key, &key) && now_ns - t->made_ns <= AGE_NS_MAX)
            return t;
    }
    return NULL;
}

const shared_text *shared_texts_put(shared_texts *all, shared_text_key key, content_coding coding,
                                    char *data, size_t bytes, uint64_t begin_ns, uint64_t now_ns)
{
    shared_text *place = &all->texts[0];
    for (int i = 0; i < SHARED_TEXTS_MAX; i++) {
        shared_text *t = &all->texts[i];
        if (t->made_ns != 0 && is_same(&t->key, &key)) {
            place = t;
            break;
        }
        if (t->made_ns < place->made_ns)
            place = t;
    }
    free(place->data);
    *place = (shared_text){
        .key = key, .coding = coding, .made_ns = now_ns, .data = data, .bytes = bytes};
    all->spent_ns += (int64_t)(now_ns - begin_ns);
    if (all->spent_ns > AT_ONCE_NS + DEBT_NS)
        all->spent_ns = AT_ONCE_NS + DEBT_NS;
    return place;
}

void shared_texts_dispose(shared_texts *all)
{
    for (int i = 0; i < SHARED_TEXTS_MAX; i++)
        free(all->texts[i].data);
    memset(all, 0, sizeof *all);
}
