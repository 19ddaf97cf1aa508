#ifndef BASE_LOG_H
#define BASE_LOG_H

/* Log lines on standard error: text on a terminal, otherwise or when configured one JSON object per
 * line. Any thread may log; each line is one write. */
typedef enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR } log_level;
typedef enum log_format { LOG_FORMAT_AUTO, LOG_FORMAT_TEXT, LOG_FORMAT_JSON } log_format;

/* Called once before other threads start. */
void log_configure(log_level least, log_format format);

/* `room` is the name of the folder that logs, such as "models". Lines over 2,000 bytes are cut.
 * Above LOG_DEBUG each message, known by `format`, is limited in rate (log_limit.h); the next line
 * says how many were withheld. */
void log_write(log_level level, const char *room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_debug(room, ...) log_write(LOG_DEBUG, room, __VA_ARGS__)
#define log_info(room, ...) log_write(LOG_INFO, room, __VA_ARGS__)
#define log_warning(room, ...) log_write(LOG_WARNING, room, __VA_ARGS__)
#define log_error(room, ...) log_write(LOG_ERROR, room, __VA_ARGS__)

#endif
