#include "loadtest/report/chart.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Coordinates of the picture; it scales to the page's width. */
#define WIDTH 520.0
#define HEIGHT 290.0
#define LEFT 58.0
#define RIGHT 14.0
#define TOP 10.0
#define BOTTOM 44.0
#define TICKS_MAX 24

typedef struct axis {
    chart_axis kind;
    double low, high; /* in transformed units */
    double from, to;  /* in the picture */
    double ticks[TICKS_MAX];
    size_t tick_count;
} axis;

/* Bytes of a valid UTF-8 sequence at `text`, 0 if there is none (RFC 3629). */
static size_t utf8_bytes(const unsigned char *text)
{
    if (text[0] < 0x80)
        return 1;
    size_t bytes = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    if (text[0] < 0xc2 || text[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
        return 0;
    return bytes;
}

void chart_escape(text_buffer *to, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
        size_t bytes = utf8_bytes(at);
        if (*at == '<')
            text_buffer_put(to, "&lt;");
        else if (*at == '>')
            text_buffer_put(to, "&gt;");
        else if (*at == '&')
            text_buffer_put(to, "&amp;");
        else if (*at == '"')
            text_buffer_put(to, "&quot;");
        else if (bytes == 0 || *at < 0x20 || *at == 0x7f)
            text_buffer_put(to, "?");
        else
            text_buffer_append(to, at, bytes);
        at += bytes ? bytes : 1;
    }
}

static double transform(chart_axis kind, double value)
{
    switch (kind) {
    case CHART_LOG:
        return value > 0 ? log10(value) : NAN;
    case CHART_PERCENTILE:
        return value < 1 ? -log10(1 - value) : NAN;
    default:
        return value;
    }
}

static double place(const axis *a, double value)
{
    double t = transform(a->kind, value);
    double share = a->high > a->low ? (t - a->low) / (a->high - a->low) : 0.5;
    return a->from + share * (a->to - a->from);
}

static void add_tick(axis *a, double value)
{
    double t = transform(a->kind, value);
    if (a->tick_count < TICKS_MAX && t >= a->low - 1e-9 && t <= a->high + 1e-9)
        a->ticks[a->tick_count++] = value;
}

static double nice_step(double span, int wanted)
{
    double rough = span / wanted, scale = pow(10, floor(log10(rough)));
    double digit = rough / scale;
    return scale * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static void make_ticks(axis *a)
{
    if (a->kind == CHART_PERCENTILE) {
        static const double quantiles[] = {0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999};
        for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
            add_tick(a, quantiles[i]);
    } else if (a->kind == CHART_LOG) {
        bool wide = a->high - a->low > 2.5; /* decades only */
        for (int decade = (int)floor(a->low); decade <= (int)ceil(a->high); decade++) {
            add_tick(a, pow(10, decade));
            if (!wide) {
                add_tick(a, 2 * pow(10, decade));
                add_tick(a, 5 * pow(10, decade));
            }
        }
    } else {
        double step = nice_step(a->high - a->low, 5);
        for (double v = ceil(a->low / step) * step; v <= a->high + step * 1e-6; v += step)
            add_tick(a, fabs(v) < step * 1e-6 ? 0 : v);
    }
}

/* Fits an axis around every point; linear ones start at 0. */
static void fit(axis *a, const chart *c, bool is_x)
{
    a->low = INFINITY;
    a->high = -INFINITY;
    for (size_t k = 0; k < c->series_count; k++) {
        const chart_series *s = &c->series[k];
        for (size_t i = 0; i < s->count; i++) {
            double t = transform(a->kind, is_x ? s->x[i] : s->y[i]);
            if (!isfinite(s->y[i]) || !isfinite(t))
                continue;
            a->low = fmin(a->low, t);
            a->high = fmax(a->high, t);
        }
    }
    if (!is_x && c->line_y > 0) {
        a->high = fmax(a->high, transform(a->kind, c->line_y));
        a->low = fmin(a->low, transform(a->kind, c->line_y));
    }
    if (!isfinite(a->low))
        a->low = a->high = 0;
    if (a->kind == CHART_LINEAR && a->low >= 0)
        a->low = 0;
    if (a->kind == CHART_LINEAR && !is_x) {
        double step = nice_step(fmax(a->high - a->low, 1e-9), 5);
        a->high = ceil(a->high / step) * step;
    }
    if (a->kind == CHART_LOG) {
        double middle = (a->low + a->high) / 2, half = fmax((a->high - a->low) / 2 * 1.05, 0.16);
        a->low = middle - half;
        a->high = middle + half;
    }
    if (a->high <= a->low)
        a->high = a->low + 1;
    make_ticks(a);
}

static void tick_text(char *out, size_t bytes, const axis *a, double value)
{
    if (a->kind == CHART_PERCENTILE && value == 0)
        snprintf(out, bytes, "0");
    else if (a->kind == CHART_PERCENTILE)
        snprintf(out, bytes, "p%.6g", value * 100);
    else if (fabs(value) >= 10000)
        snprintf(out, bytes, "%.4gk", value / 1000);
    else
        snprintf(out, bytes, "%.4g", value);
}

static void draw_axes(text_buffer *to, const chart *c, const axis *x, const axis *y)
{
    char text[32];
    for (size_t i = 0; i < y->tick_count; i++) {
        double at = place(y, y->ticks[i]);
        tick_text(text, sizeof text, y, y->ticks[i]);
        text_buffer_format(to,
                           "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>"
                           "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                           LEFT, at, WIDTH - RIGHT, LEFT - 7, at + 5, text);
    }
    for (size_t i = 0; i < x->tick_count; i++) {
        double at = place(x, x->ticks[i]);
        tick_text(text, sizeof text, x, x->ticks[i]);
        text_buffer_format(to,
                           "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>"
                           "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n",
                           at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 18,
                           at > WIDTH - RIGHT - 16 ? "end" : "middle", text);
    }
    text_buffer_format(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                       (LEFT + WIDTH) / 2, HEIGHT - 6);
    chart_escape(to, c->x_label);
    text_buffer_put(to, "</text>\n");
}

static void draw_series(text_buffer *to, const chart_series *s, const axis *x, const axis *y)
{
    bool pen_down = false;
    text_buffer_format(to, "<path class=\"line s%d%s\" d=\"", s->color, s->dashed ? " dashed" : "");
    for (size_t i = 0; i < s->count; i++) {
        double px = place(x, s->x[i]), py = place(y, s->y[i]);
        if (!isfinite(px) || !isfinite(py)) {
            pen_down = false;
            continue;
        }
        text_buffer_format(to, "%c%.1f %.1f", pen_down ? 'L' : 'M', px, py);
        pen_down = true;
    }
    text_buffer_put(to, "\"/>\n");
    for (size_t i = 0; s->dots && i < s->count; i++) {
        double px = place(x, s->x[i]), py = place(y, s->y[i]);
        if (isfinite(px) && isfinite(py))
            text_buffer_format(to, "<circle class=\"dot s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
                               s->color, px, py);
    }
}

static void begin_figure(text_buffer *to, const char *title, const char *note)
{
    text_buffer_put(to, "<figure><figcaption><b>");
    chart_escape(to, title);
    text_buffer_put(to, "</b>");
    if (note != NULL && note[0] != 0) {
        text_buffer_put(to, ", ");
        chart_escape(to, note);
    }
    text_buffer_put(to, "</figcaption><p class=\"legend\">");
}

void chart_draw(text_buffer *to, const chart *c)
{
    axis x = {.kind = c->x_axis, .from = LEFT, .to = WIDTH - RIGHT};
    axis y = {.kind = c->y_axis, .from = HEIGHT - BOTTOM, .to = TOP};
    fit(&x, c, true);
    fit(&y, c, false);
    begin_figure(to, c->title, c->y_label);
    for (size_t k = 0; k < c->series_count; k++) {
        text_buffer_format(to, "<span><i class=\"key s%d%s\"></i>", c->series[k].color,
                           c->series[k].dashed ? " dashed" : "");
        chart_escape(to, c->series[k].name);
        text_buffer_put(to, "</span> ");
    }
    text_buffer_format(to,
                       "</p><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
                       "role=\"img\" aria-label=\"",
                       WIDTH, HEIGHT);
    chart_escape(to, c->title);
    text_buffer_put(to, "\">\n");
    draw_axes(to, c, &x, &y);
    if (c->line_y > 0) {
        double at = place(&y, c->line_y);
        text_buffer_format(to, "<path class=\"limit\" d=\"M%.1f %.1fH%.1f\"/>\n", LEFT, at,
                           WIDTH - RIGHT);
    }
    for (size_t k = 0; k < c->series_count; k++)
        draw_series(to, &c->series[k], &x, &y);
    text_buffer_put(to, "</svg></figure>\n");
}

void chart_bars(text_buffer *to, const char *title, const char *unit, const char *const *names,
                const char *const *column_names, const double *values, size_t count, size_t columns)
{
    const double bar = 17, gap = 10, label = 140, room = WIDTH - label - 80;
    double most = 0, height = (double)count * ((double)columns * bar + gap) + 4;
    for (size_t i = 0; i < count * columns; i++)
        most = fmax(most, values[i]);
    begin_figure(to, title, unit);
    for (size_t k = 0; k < columns; k++) {
        text_buffer_format(to, "<span><i class=\"key s%zu\"></i>", k);
        chart_escape(to, column_names[k]);
        text_buffer_put(to, "</span> ");
    }
    text_buffer_format(
        to,
        "</p><svg class=\"bars\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
        "role=\"img\">\n",
        WIDTH, height);
    for (size_t i = 0; i < count; i++) {
        double top = 2 + (double)i * ((double)columns * bar + gap);
        text_buffer_format(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", label - 8,
                           top + (double)columns * bar / 2 + 5);
        chart_escape(to, names[i]);
        text_buffer_put(to, "</text>\n");
        for (size_t k = 0; k < columns; k++) {
            double value = values[i * columns + k];
            double width = most > 0 ? fmax(value / most * room, 1) : 1;
            double y = top + (double)k * bar;
            text_buffer_format(to,
                               "<rect class=\"bar s%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                               "height=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\">%.3g</text>\n",
                               k, label, y, width, bar - 2, label + width + 6, y + 13, value);
        }
    }
    text_buffer_put(to, "</svg></figure>\n");
}
