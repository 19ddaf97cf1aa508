/* Normalisation forms. Decomposed characters are sorted by combining class within each run of
 * marks; composition follows. What is sorted keeps the `change` it came with, as in the library's
 * iterators. */
#include <string.h>

#include "text/aligned/grow.h"
#include "text/normalize/edit.h"
#include "text/normalize/normalizer.h"
#include "text/unicode/compose.h"
#include "text/unicode/properties.h"

typedef struct mark {
    uint32_t code;
    int change;
    unsigned class;
} mark;

typedef struct marks {
    mark *items;
    size_t count, capacity;
    mark own[32];
} marks;

/* False: there is no memory. */
static bool marks_add(marks *m, mark item)
{
    if (m->items == NULL) {
        m->items = m->own;
        m->capacity = sizeof m->own / sizeof *m->own;
    }
    if (m->count == m->capacity) {
        size_t capacity = grow_capacity(m->capacity, m->count + 1);
        mark *larger = m->items == m->own ? NULL : m->items;
        if (!grow(&larger, capacity, sizeof *larger))
            return false;
        if (m->items == m->own)
            memcpy(larger, m->own, sizeof m->own);
        m->items = larger;
        m->capacity = capacity;
    }
    m->items[m->count++] = item;
    return true;
}

static void marks_dispose(marks *m)
{
    if (m->items != m->own)
        free(m->items);
}

/* By class, stable: counting sort, or insertion where they are few. False: there is no memory. */
static bool marks_sort(marks *m)
{
    if (m->count <= 16) {
        for (size_t i = 1; i < m->count; i++) {
            mark moving = m->items[i];
            size_t at = i;
            for (; at > 0 && m->items[at - 1].class > moving.class; at--)
                m->items[at] = m->items[at - 1];
            m->items[at] = moving;
        }
        return true;
    }
    size_t begins[257] = {0};
    mark *sorted = malloc(m->count * sizeof *sorted);
    if (sorted == NULL)
        return false;
    for (size_t i = 0; i < m->count; i++)
        begins[m->items[i].class + 1]++;
    for (int class = 0; class < 256; class ++)
        begins[class + 1] += begins[class];
    for (size_t i = 0; i < m->count; i++)
        sorted[begins[m->items[i].class]++] = m->items[i];
    memcpy(m->items, sorted, m->count * sizeof *sorted);
    free(sorted);
    return true;
}

typedef struct forms {
    edit e;
    bool composes;
    marks run; /* marks since the last character of class 0: not sorted yet */
    /* Composition: */
    bool has_base, has_blocked;
    mark base;
    marks blocked; /* marks behind base that did not compose with it */
    unsigned last_class;
} forms;

static void flush_blocked(forms *f)
{
    for (size_t i = 0; i < f->blocked.count; i++)
        edit_put(&f->e, f->blocked.items[i].code, f->blocked.items[i].change);
    f->blocked.count = 0;
    f->has_blocked = false;
}

static void block(forms *f, mark m)
{
    f->e.to->is_broken |= !marks_add(&f->blocked, m);
    f->has_blocked = true;
    f->last_class = m.class;
}

static void compose(forms *f, mark m)
{
    if (!f->has_base) {
        if (m.class != 0) {
            edit_put(&f->e, m.code, m.change);
        } else {
            f->base = m;
            f->has_base = true;
        }
        return;
    }
    if (!f->has_blocked || f->last_class < m.class) {
        uint32_t whole = unicode_compose(f->base.code, m.code);
        if (whole != 0) {
            f->base.code = whole;
            f->base.change += m.change - 1;
            return;
        }
    }
    if (m.class != 0) {
        block(f, m);
        return;
    }
    edit_put(&f->e, f->base.code, f->base.change);
    flush_blocked(f);
    f->base = m;
}

static void deliver(forms *f, mark m)
{
    if (f->composes)
        compose(f, m);
    else
        edit_put(&f->e, m.code, m.change);
}

static void flush_run(forms *f)
{
    if (f->run.count == 0)
        return;
    f->e.to->is_broken |= !marks_sort(&f->run);
    for (size_t i = 0; i < f->run.count; i++)
        deliver(f, f->run.items[i]);
    f->run.count = 0;
}

static void normalize(const aligned_text *from, size_t begin, size_t end, bool is_compatible,
                      bool composes, aligned_text *to)
{
    forms f = {.e = edit_begin(from, begin, end, to), .composes = composes};
    int32_t parts[UNICODE_PARTS_MAX];
    for (size_t at = begin; at < end; at += utf8_length(from->data[at])) {
        unsigned count = unicode_decompose(utf8_decode(from->data + at), is_compatible, parts);
        for (unsigned i = 0; i < count; i++) {
            uint32_t code = (uint32_t)parts[i];
            mark m = {code, i > 0, unicode_combining_class(code)};
            if (m.class != 0) {
                to->is_broken |= !marks_add(&f.run, m);
                continue;
            }
            flush_run(&f);
            deliver(&f, m);
        }
    }
    flush_run(&f);
    if (f.has_base)
        edit_put(&f.e, f.base.code, f.base.change);
    flush_blocked(&f);
    marks_dispose(&f.run);
    marks_dispose(&f.blocked);
}

/* Whether none of the characters takes part in a form. */
static bool is_plain(const aligned_text *from, size_t begin, size_t end, unsigned properties)
{
    size_t at = begin + utf8_ascii_bytes(from->data + begin, end - begin);
    for (; at < end; at += utf8_length(from->data[at])) {
        if (unicode_properties(utf8_decode(from->data + at)) & properties)
            return false;
    }
    return true;
}

void normalize_decompose(const aligned_text *from, size_t begin, size_t end, bool is_compatible,
                         aligned_text *to)
{
    unsigned has = is_compatible ? UNICODE_DECOMPOSES_COMPATIBLY : UNICODE_DECOMPOSES;
    if (is_plain(from, begin, end, has | UNICODE_REORDERS))
        aligned_text_copy(to, from, begin, end);
    else
        normalize(from, begin, end, is_compatible, false, to);
}

/* A character that decomposes is most often composed again: nothing changes unless it stands before
 * something that composes, or does not come back as it was. */
void normalize_compose(const aligned_text *from, size_t begin, size_t end, bool is_compatible,
                       aligned_text *to)
{
    unsigned has = is_compatible ? UNICODE_DECOMPOSES_COMPATIBLY : UNICODE_EXCLUDED;
    if (is_plain(from, begin, end, has | UNICODE_REORDERS | UNICODE_SECOND))
        aligned_text_copy(to, from, begin, end);
    else
        normalize(from, begin, end, is_compatible, true, to);
}
