#include "devices/cpu/dynamic/forms.h"

#include <assert.h>

status dynamic_forms_init(dynamic_forms *all, const graph *g)
{
    *all = (dynamic_forms){.graph = g};
    pthread_mutex_init(&all->lock, NULL);
    return dynamic_form_create_single(g, &all->single);
}

void dynamic_forms_dispose(dynamic_forms *all)
{
    while (all->first) {
        dynamic_form *f = all->first;
        assert(f->users == 0);
        all->first = f->next;
        dynamic_form_destroy(f);
    }
    dynamic_form_destroy(all->single);
    pthread_mutex_destroy(&all->lock);
}

static dynamic_form *find(dynamic_forms *all, const tensor *inputs)
{
    for (dynamic_form *f = all->first; f; f = f->next)
        if (dynamic_form_is_for(f, inputs)) {
            f->users++;
            f->used = ++all->clock;
            return f;
        }
    return NULL;
}

/* Unlinks the unused form that was used longest ago, while there is too much; NULL: nothing is left
 * to drop. */
static dynamic_form *evict(dynamic_forms *all)
{
    dynamic_form **oldest = NULL;
    if (all->count <= DYNAMIC_FORMS_MAX && all->bytes <= DYNAMIC_FORMS_BYTES_MAX)
        return NULL;
    for (dynamic_form **f = &all->first; *f; f = &(*f)->next)
        if ((*f)->users == 0 && (!oldest || (*f)->used < (*oldest)->used))
            oldest = f;
    if (!oldest)
        return NULL;
    dynamic_form *gone = *oldest;
    *oldest = gone->next;
    all->count--;
    all->bytes -= gone->bytes;
    return gone;
}

/* Adds what was made, unless another thread was quicker. */
static dynamic_form *keep(dynamic_forms *all, dynamic_form *made)
{
    dynamic_form *gone = NULL;
    pthread_mutex_lock(&all->lock);
    dynamic_form *kept = find(all, made->shapes);
    if (kept) {
        made->next = gone;
        gone = made;
    } else {
        made->users = 1;
        made->used = ++all->clock;
        made->next = all->first;
        all->first = kept = made;
        all->count++;
        all->bytes += made->bytes;
    }
    for (dynamic_form *f; (f = evict(all));) {
        f->next = gone;
        gone = f;
    }
    pthread_mutex_unlock(&all->lock);
    for (dynamic_form *f = gone; f; f = gone) {
        gone = f->next;
        dynamic_form_destroy(f);
    }
    return kept;
}

status dynamic_forms_acquire(dynamic_forms *all, const cpu_dynamic_options *options,
                             const tensor *inputs, dynamic_form **out)
{
    pthread_mutex_lock(&all->lock);
    dynamic_form *found = find(all, inputs), *made;
    pthread_mutex_unlock(&all->lock);
    if (!found) {
        status s = dynamic_form_create(all->graph, options, inputs, &made);
        if (s)
            return s;
        found = keep(all, made);
    }
    *out = found;
    return STATUS_OK;
}

void dynamic_forms_release(dynamic_forms *all, dynamic_form *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&all->lock);
    assert(f->users > 0);
    f->users--;
    pthread_mutex_unlock(&all->lock);
}
