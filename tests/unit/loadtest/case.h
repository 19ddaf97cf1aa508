#ifndef TESTS_UNIT_LOADTEST_CASE_H
#define TESTS_UNIT_LOADTEST_CASE_H

#include "loadtest/report/result.h"

/* A temporary folder with one file, and a result to report. */

/* For .init and .fini of a suite: make and remove the folder. */
void case_begin(void);
void case_end(void);

/* Writes the file and returns its path, the same for each call. */
const char *case_file(const char *text);

/* Expects status_message() to contain `words`; `about` names the case. */
void case_expect_message(const char *words, const char *about);

/* A result of 1000 requests, 3 of them rejected, with latencies of `base_ns` and more. */
void case_fill_result(result *r, uint64_t base_ns);

#endif
