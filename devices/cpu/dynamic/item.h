#ifndef DEVICES_CPU_DYNAMIC_ITEM_H
#define DEVICES_CPU_DYNAMIC_ITEM_H

#include "base/tensor.h"

/* A value while a dynamic program runs: a tensor, a sequence, or an optional that is empty. Items
 * that share memory count references; a run is on one thread. */

typedef enum item_kind { ITEM_NONE, ITEM_TENSOR, ITEM_SEQUENCE, ITEM_EMPTY } item_kind;

/* Bytes of tensors that a run holds now. */
typedef struct item_memory {
    int64_t bytes;
} item_memory;

typedef struct item_buffer {
    int references;
    size_t bytes;
    item_memory *memory;
} item_buffer;

typedef struct item {
    item_kind kind;
    tensor tensor;
    item_buffer *buffer; /* owns tensor.data; NULL: it is borrowed for the whole run */
    struct item_sequence *sequence;
} item;

typedef struct item_sequence {
    int references;
    int64_t count;
    item items[];
} item_sequence;

/* A tensor of that shape, not zeroed. STATUS_OUT_OF_MEMORY. */
status item_allocate(item_memory *m, const tensor *shape, item *out) MUST_CHECK;
/* A sequence of `count` items that are ITEM_NONE. STATUS_OUT_OF_MEMORY. */
status item_allocate_sequence(int64_t count, item *out) MUST_CHECK;
item item_borrow(const tensor *t);
/* One more reference to what `from` shares. */
item item_retain(const item *from);
/* Leaves ITEM_NONE. */
void item_release(item *i);

#endif
