/* penstock-load: reads the command line, measures, writes reports. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loadtest/combine.h"
#include "loadtest/measure.h"
#include "loadtest/session.h"
#include "loadtest/wire/memory.h"

/* The exit codes of --help. */
enum {
    EXIT_DONE = 0,
    EXIT_NOT_MET = 1,
    EXIT_USAGE = 2,
    EXIT_FAILED = 3,
    EXIT_WRONG = 4,
    EXIT_CUT_SHORT = 5
};

/* SIGINT or SIGTERM, once received: no further run begins, and the report covers what was measured.
 */
static volatile sig_atomic_t stop_signal;

static void on_stop_signal(int number)
{
    stop_signal = number;
}

/* A second signal ends the process at once, as the first does before any run. */
static void catch_stop_signals(void)
{
    const struct sigaction action = {.sa_handler = on_stop_signal, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static status write_reports(session *p)
{
    const options *o = &p->options;
    report *to = &p->report;
    to->result = &p->result;
    to->cut_short = stop_signal != 0;
    to->slo = o->slo;
    to->slo_count = o->slo_count;
    bool taken = (o->json && strcmp(o->json, "-") == 0) || (o->csv && strcmp(o->csv, "-") == 0);
    if (!o->quiet || !taken)
        report_text(to, taken ? stderr : stdout);
    status s = STATUS_OK, failed;
    if (o->json != NULL && (failed = report_json(to, o->json)) != STATUS_OK)
        s = failed;
    if (o->csv != NULL && (failed = report_csv(to, o->csv)) != STATUS_OK)
        s = failed;
    if (o->html != NULL && (failed = report_html(to, NULL, o->html)) != STATUS_OK)
        s = failed;
    return s;
}

static int exit_code(const session *p)
{
    const result *r = &p->result;
    if (r->errors[REQUEST_WRONG_RESPONSE] != 0)
        return EXIT_WRONG;
    if (p->report.cut_short)
        return EXIT_CUT_SHORT;
    if (p->options.slo_count != 0) {
        bool held = p->options.mode == MODE_RUN || p->options.mode == MODE_MERGE
                        ? result_slo_all_held(r, p->options.slo, p->options.slo_count)
                        : p->report.found_rate > 0;
        if (!held)
            return EXIT_NOT_MET;
    }
    return r->sent != 0 && r->succeeded == 0 ? EXIT_WRONG : EXIT_DONE;
}

/* Checks that a report can be written, before a run whose result would be lost. */
static status check_report_path(const char *path)
{
    if (path == NULL || strcmp(path, "-") == 0)
        return STATUS_OK;
    const char *slash = strrchr(path, '/');
    char *folder = slash == NULL ? memory_copy_string(".", 1)
                                 : memory_copy_string(path, (size_t)(slash - path) + 1);
    int refused = access(path, F_OK) == 0 ? access(path, W_OK) : access(folder, W_OK | X_OK);
    int error = errno;
    free(folder);
    return refused ? status_fail(STATUS_IO, "cannot write %s: %s", path, strerror(error))
                   : STATUS_OK;
}

static status check_report_paths(const options *o)
{
    status s = check_report_path(o->json);
    if (!s)
        s = check_report_path(o->csv);
    return s ? s : check_report_path(o->html);
}

static status work(session *p)
{
    options *o = &p->options;
    p->report.title = o->title;
    p->report.dollars_per_hour = o->dollars_per_hour;
    status s = check_report_paths(o);
    if (s)
        return s;
    if (o->mode == MODE_COMPARE)
        return combine_compare(p);
    if (o->mode == MODE_MERGE) {
        s = combine_merge(p);
        return s ? s : write_reports(p);
    }
    s = session_prepare(p);
    if (s)
        return s;
    p->stop = &stop_signal;
    catch_stop_signals();
    switch (o->mode) {
    case MODE_FIND_MAX:
        s = measure_find_max(p);
        break;
    case MODE_SWEEP:
        s = measure_sweep(p);
        break;
    default:
        s = measure_once(p, &p->result);
    }
    return s ? s : write_reports(p);
}

int main(int argc, char **argv)
{
    static session p;
    signal(SIGPIPE, SIG_IGN);
    status s = options_parse(&p.options, argc, argv);
    if (s) {
        fprintf(stderr, "penstock-load: %s\nSee penstock-load --help.\n", status_message());
        options_dispose(&p.options);
        return EXIT_USAGE;
    }
    if (p.options.help || p.options.version) {
        fputs(p.options.help ? options_help() : "penstock-load " PENSTOCK_VERSION "\n", stdout);
        return EXIT_DONE;
    }
    s = work(&p);
    int code = p.is_url_invalid ? EXIT_USAGE : s == STATUS_CANCELLED ? EXIT_CUT_SHORT : EXIT_FAILED;
    if (s)
        fprintf(stderr, "penstock-load: %s\n", status_message());
    else
        code = p.options.mode == MODE_COMPARE ? EXIT_DONE : exit_code(&p);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("penstock-load: cannot write to standard output\n", stderr);
        code = EXIT_FAILED;
    }
    session_dispose(&p);
    return code;
}
