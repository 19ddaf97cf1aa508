#include "text/unicode/properties.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define PAGE_COUNT (0x110000 / UNICODE_PAGE)

const uint16_t *unicode_pages[PAGE_COUNT];

static const struct lower_range {
    uint32_t first, last;
    int32_t distance;
} lower_ranges[] = {
#define FLAGS(first, last, bits)
#define LOWER(first, last, distance) {first, last, distance},
#include "text/unicode/differences.inc"
#undef FLAGS
#undef LOWER
    {0x110000, 0x110000, 0}};
#define LOWER_COUNT (sizeof lower_ranges / sizeof *lower_ranges - 1)

static const struct flag_range {
    uint32_t first, last;
    uint16_t bits;
} flag_ranges[] = {
#define FLAGS(first, last, bits) {first, last, bits},
#define LOWER(first, last, distance)
#include "text/unicode/differences.inc"
#undef FLAGS
#undef LOWER
};
#define FLAG_COUNT (sizeof flag_ranges / sizeof *flag_ranges)

static bool is_between(int category, int first, int last)
{
    return category >= first && category <= last;
}

/* By general category. utf8proc numbers the categories in the order of the standard. */
static unsigned category_properties(uint32_t code, int category)
{
    bool is_letter = is_between(category, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
    bool is_mark = is_between(category, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME);
    bool is_number = is_between(category, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
    unsigned p = 0;
    if (is_letter)
        p |= UNICODE_LETTER;
    if (is_mark)
        p |= UNICODE_MARK;
    if (is_number)
        p |= UNICODE_NUMBER | UNICODE_NUMERIC;
    if (category == UTF8PROC_CATEGORY_MN)
        p |= UNICODE_NONSPACING;
    if (is_letter || is_mark || category == UTF8PROC_CATEGORY_ND ||
        category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_PC)
        p |= UNICODE_WORD;
    if (is_between(category, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO) ||
        (code < 0x80 && is_between(category, UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO)))
        p |= UNICODE_PUNCTUATION;
    if (is_between(category, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP) ||
        (code >= 9 && code <= 13) || code == 0x85)
        p |= UNICODE_SPACE;
    if (is_between(category, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO))
        p |= UNICODE_OTHER;
    return p;
}

static bool decomposes(int32_t code, utf8proc_option_t options)
{
    utf8proc_int32_t parts[32];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char(code, parts, 32, options, &boundary);
    return n != 1 || parts[0] != code;
}

static bool is_composed_again(int32_t code)
{
    utf8proc_int32_t parts[33];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char(code, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
    n = utf8proc_normalize_utf32(parts, n, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    return n == 1 && parts[0] == code;
}

/* The blocks that BERT surrounds with spaces. */
static bool is_ideograph(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static uint16_t find_properties(uint32_t code)
{
    const utf8proc_property_t *property = utf8proc_get_property((int32_t)code);
    unsigned p = category_properties(code, property->category);
    if (utf8proc_tolower((int32_t)code) != (int32_t)code)
        p |= UNICODE_LOWERS;
    if (property->combining_class != 0)
        p |= UNICODE_REORDERS;
    if (decomposes((int32_t)code, UTF8PROC_DECOMPOSE))
        p |= UNICODE_DECOMPOSES;
    if (decomposes((int32_t)code, UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT))
        p |= UNICODE_DECOMPOSES_COMPATIBLY;
    if (is_ideograph(code))
        p |= UNICODE_IDEOGRAPH;
    /* utf8proc marks second characters with the high bit; vowels and final consonants of Hangul
     * compose by arithmetic. */
    if ((property->comb_index != UINT16_MAX && property->comb_index & 0x8000) ||
        (code >= 0x1161 && code <= 0x1175) || (code >= 0x11A8 && code <= 0x11C2))
        p |= UNICODE_SECOND;
    if (p & UNICODE_DECOMPOSES && !is_composed_again((int32_t)code))
        p |= UNICODE_EXCLUDED;
    return (uint16_t)p;
}

/* Page i, and all behind it, have not been made. */
static status drop_pages(uint32_t i)
{
    while (i-- > 0) {
        if (i == 0 || unicode_pages[i] != unicode_pages[i - 1])
            free((void *)unicode_pages[i]);
        unicode_pages[i] = NULL;
    }
    return status_fail(STATUS_OUT_OF_MEMORY, "no memory for the properties of characters");
}

static status build(void)
{
    uint16_t page[UNICODE_PAGE];
    size_t range = 0;
    for (uint32_t first = 0; first < 0x110000; first += UNICODE_PAGE) {
        for (uint32_t i = 0; i < UNICODE_PAGE; i++) {
            uint32_t code = first + i;
            page[i] = code >= 0xD800 && code < 0xE000 ? UNICODE_OTHER : find_properties(code);
            while (range < FLAG_COUNT && flag_ranges[range].last < code)
                range++;
            if (range < FLAG_COUNT && code >= flag_ranges[range].first)
                page[i] ^= flag_ranges[range].bits;
        }
        /* Most equal pages are neighbours: scripts of one kind, private use, unassigned. */
        const uint16_t *before = first ? unicode_pages[first / UNICODE_PAGE - 1] : NULL;
        if (before == NULL || memcmp(before, page, sizeof page) != 0) {
            uint16_t *copy = malloc(sizeof page);
            if (copy == NULL)
                return drop_pages(first / UNICODE_PAGE);
            before = memcpy(copy, page, sizeof page);
        }
        unicode_pages[first / UNICODE_PAGE] = before;
    }
    return STATUS_OK;
}

status unicode_initialise(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_built;
    pthread_mutex_lock(&lock);
    status s = is_built ? STATUS_OK : build();
    is_built = s == STATUS_OK;
    pthread_mutex_unlock(&lock);
    return s;
}

uint32_t unicode_lowercase(uint32_t code)
{
    if (code < 0x80)
        return code | 0x20;
    for (size_t i = 0; i < LOWER_COUNT; i++) {
        if (code >= lower_ranges[i].first && code <= lower_ranges[i].last)
            return (uint32_t)((int32_t)code + lower_ranges[i].distance);
    }
    return (uint32_t)utf8proc_tolower((int32_t)code);
}
