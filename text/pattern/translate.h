#ifndef TEXT_PATTERN_TRANSLATE_H
#define TEXT_PATTERN_TRANSLATE_H

#include "base/status.h"
#include "base/text/text_buffer.h"

/* Appends to `out` what PCRE2 needs to match as Oniguruma (syntax of Ruby) does with the regular
 * expression: properties get the characters that newer Unicode versions gave them, \s and \w their
 * meaning there, \h is a hexadecimal digit. STATUS_UNSUPPORTED names a construct whose meaning
 * differs and that is not translated. */
status pattern_translate(const char *text, size_t bytes, text_buffer *out) MUST_CHECK;

#endif
