#ifndef DEVICES_CPU_DYNAMIC_FORMS_H
#define DEVICES_CPU_DYNAMIC_FORMS_H

#include <pthread.h>

#include "devices/cpu/dynamic/form.h"

/* The forms of one graph or body: that for any inputs, and those for the shapes that were used
 * last. Any thread. */

#define DYNAMIC_FORMS_MAX 32
#define DYNAMIC_FORMS_BYTES_MAX ((size_t)64 << 20)

typedef struct dynamic_forms {
    const graph *graph;
    dynamic_form *single; /* for any inputs */
    pthread_mutex_t lock; /* of what follows */
    dynamic_form *first;
    int count;
    size_t bytes;
    uint64_t clock;
} dynamic_forms;

/* STATUS_OUT_OF_MEMORY; then, too, it is to be disposed. */
status dynamic_forms_init(dynamic_forms *all, const graph *g) MUST_CHECK;
void dynamic_forms_dispose(dynamic_forms *all); /* no form in use */

/* The form for inputs of exactly these shapes (data: of constants), until it is released. Errors of
 * dynamic_form_create(). */
status dynamic_forms_acquire(dynamic_forms *all, const cpu_dynamic_options *options,
                             const tensor *inputs, dynamic_form **out) MUST_CHECK;
void dynamic_forms_release(dynamic_forms *all, dynamic_form *f); /* accepts NULL */

#endif
