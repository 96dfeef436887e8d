/* conformance/report_page.c: the report that a vendor can publish, as Markdown, or as HTML where the file's name ends so:
 * what was checked, with which options, what came of it, and why each skipped case did not run. It names no folder. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

typedef struct page {
  FILE *out;
  bool html;
  bool in_table, in_list;
} page;

/* Text that no mark of either language comes out of. */
static void words(const page *p, const char *text) {
  const char *end = text + strlen(text);
  for (const char *at = text; at < end;) {
    const uint64_t n = kit_text_printable(at, end);
    if (n == 0) fputc(*at == '\n' || *at == '\t' ? ' ' : '?', p->out);
    else if (*at == '<') fputs("&lt;", p->out);
    else if (*at == '>') fputs("&gt;", p->out);
    else if (*at == '&') fputs("&amp;", p->out);
    else if (!p->html && strchr("\\`*_[]|#", *at) != NULL) fprintf(p->out, "\\%c", *at);
    else fwrite(at, 1, (size_t)n, p->out);
    at += n > 0 ? n : 1;
  }
}

static void leave(page *p) {
  if (p->html && p->in_table) fputs("</table>\n", p->out);
  if (p->html && p->in_list) fputs("</ul>\n", p->out);
  if (!p->html && (p->in_table || p->in_list)) fputc('\n', p->out);
  p->in_table = p->in_list = false;
}

static void heading(page *p, int level, const char *text) {
  leave(p);
  if (p->html) fprintf(p->out, "<h%d>", level);
  else fprintf(p->out, "%.*s ", level, "######");
  words(p, text);
  if (p->html) fprintf(p->out, "</h%d>\n", level);
  else fputs("\n\n", p->out);
}

static void paragraph(page *p, const char *text) {
  leave(p);
  if (p->html) fputs("<p>", p->out);
  words(p, text);
  fputs(p->html ? "</p>\n" : "\n\n", p->out);
}

/* One row; the first of a table is its head. The cells end with NULL. */
static void row(page *p, const char *const *cells) {
  const bool head = !p->in_table;
  size_t n = 0;
  if (head) leave(p);
  if (head && p->html) fputs("<table>\n", p->out);
  p->in_table = true;
  fputs(p->html ? "<tr>" : "|", p->out);
  for (; cells[n] != NULL; n++) {
    fputs(!p->html ? " " : head ? "<th>" : "<td>", p->out);
    words(p, cells[n]);
    fputs(!p->html ? " |" : head ? "</th>" : "</td>", p->out);
  }
  fputs(p->html ? "</tr>\n" : "\n", p->out);
  if (!head || p->html) return;
  fputc('|', p->out);
  for (size_t i = 0; i < n; i++) fputs("---|", p->out);
  fputc('\n', p->out);
}
#define ROW(p, ...) row(p, (const char *const[]){__VA_ARGS__, NULL})

/* A line of a list; the first words stand out. */
static void item(page *p, const char *name, const char *text) {
  if (!p->in_list) {
    leave(p);
    if (p->html) fputs("<ul>\n", p->out);
    p->in_list = true;
  }
  fputs(p->html ? "<li><b>" : "- **", p->out);
  words(p, name);
  fputs(p->html ? "</b>" : "**", p->out);
  if (text[0] != '\0') fputs(": ", p->out);
  words(p, text);
  fputs(p->html ? "</li>\n" : "\n", p->out);
}

static void number(char *out, size_t bytes, uint64_t n) {
  snprintf(out, bytes, "%" PRIu64, n);
}

static void write_subject(page *p, const check_options *o, const check_list *list) {
  const char *slash = strrchr(o->library, '/');
  char text[160], date[32];
  ROW(p, "what", "value");
  ROW(p, "plugin", list->plugin[0] != '\0' ? list->plugin : "(its entry was not reached)");
  ROW(p, "file", slash != NULL ? slash + 1 : o->library);
  number(text, sizeof text, list->file_bytes);
  ROW(p, "bytes of the file", text);
  ROW(p, "plugin ABI of the plugin", list->plugin_abi[0] != '\0' ? list->plugin_abi : "-");
  snprintf(text, sizeof text, "%d.%d", HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR);
  ROW(p, "plugin ABI of the kit", text);
  ROW(p, "Heddle", HEDDLE_VERSION);
  ROW(p, "date (UTC)", check_date(list, date, sizeof date));
  snprintf(text, sizeof text, "%.1f s, %u at a time", list->seconds, (unsigned)o->jobs);
  ROW(p, "time", text);
  snprintf(text, sizeof text, "%g s", o->seconds);
  ROW(p, "time limit of a case", text);
  ROW(p, "cases", o->only.count > 0 ? "a selection (--only)" : o->quick ? "without the long ones (--quick)" : "all");
  for (size_t i = 0; i < o->settings.count; i++) ROW(p, "setting", o->settings.data[i]);
}

static void write_devices(page *p, const check_options *o, const check_list *list) {
  heading(p, 2, "Devices");
  ROW(p, "device", "name", "driver", "memory (MiB)", "compute units", "streams", "capabilities", "checked");
  for (uint32_t i = 0; i < list->n_devices; i++) {
    char index[16], memory[32] = "-", units[16] = "-", streams[16] = "-", caps[256] = "";
    const check_about *a = i < list->n_about ? &list->about[i] : NULL;
    bool checked = false;
    snprintf(index, sizeof index, "%u", (unsigned)i);
    if (a != NULL) {
      if (a->memory_bytes != 0) number(memory, sizeof memory, a->memory_bytes >> 20);
      number(units, sizeof units, a->compute_units);
      number(streams, sizeof streams, a->max_streams);
      for (unsigned bit = 0; bit < 64; bit++) {
        const size_t n = strlen(caps);
        if ((a->caps >> bit & 1) != 0 && check_cap_name(bit) != NULL)
          snprintf(caps + n, sizeof caps - n, "%s%s", n > 0 ? ", " : "", check_cap_name(bit));
      }
    }
    for (size_t c = 0; c < list->count && !checked; c++)
      checked = list->data[c].index == i && list->data[c].outcome != CHECK_WAITING && check_is_reported(&list->data[c]);
    if (o->device == UINT32_MAX || checked)
      ROW(p, index, a != NULL ? a->name : "-", list->drivers[i], memory, units, streams, caps, checked ? "yes" : "no");
    else ROW(p, index, a != NULL ? a->name : "-", list->drivers[i], memory, units, streams, caps, "no");
  }
}

static void write_groups(page *p, const check_list *list) {
  heading(p, 2, "Results by group");
  ROW(p, "group", "passed", "failed", "skipped", "seconds");
  for (size_t g = 0; g < n_check_groups; g++) {
    uint64_t passed = 0, failed = 0, skipped = 0;
    double seconds = 0;
    char a[24], b[24], c[24], d[24];
    for (size_t i = 0; i < list->count; i++) {
      const check *one = &list->data[i];
      if (one->group != check_groups[g] || one->outcome == CHECK_WAITING || !check_is_reported(one)) continue;
      seconds += one->seconds;
      if (one->outcome == CHECK_PASS) passed++;
      else if (one->outcome == CHECK_SKIP) skipped++;
      else failed++;
    }
    if (passed + failed + skipped == 0) continue;
    number(a, sizeof a, passed), number(b, sizeof b, failed), number(c, sizeof c, skipped);
    snprintf(d, sizeof d, "%.1f", seconds);
    ROW(p, check_groups[g]->name, a, b, c, d);
  }
}

static void write_failures(page *p, const check_list *list) {
  bool any = false;
  for (size_t i = 0; i < list->count; i++) {
    const check *c = &list->data[i];
    const bool plain = c->outcome == CHECK_FAIL && c->cause == 0;
    if (!plain && c->outcome != CHECK_FAIL_EXPECTED && c->outcome != CHECK_PASS_UNEXPECTED) continue;
    if (!any) heading(p, 2, "Failures");
    any = true;
    heading(p, 3, c->name);
    if (c->reason != NULL) paragraph(p, c->reason);
    if (c->outcome == CHECK_FAIL_EXPECTED) item(p, "expected", c->excuse != NULL ? c->excuse : "");
    item(p, "promised", c->what->promise);
    for (size_t j = 0; j < list->count; j++)
      if (list->data[j].cause == i + 1) item(p, "consequence", list->data[j].name);
  }
}

/* Each reason once, with its cases. */
static void write_skips(page *p, const check_list *list) {
  bool *done = calloc(list->count > 0 ? list->count : 1, sizeof *done);
  bool any = false;
  for (size_t i = 0; i < list->count && done != NULL; i++) {
    const check *c = &list->data[i];
    if (c->outcome != CHECK_SKIP || !check_is_reported(c) || done[i]) continue;
    const char *reason = c->reason != NULL ? c->reason : "";
    if (!any) {
      heading(p, 2, "Skipped");
      ROW(p, "why", "what makes them run", "cases");
    }
    any = true;
    char *names = NULL;
    size_t bytes = 0;
    FILE *list_out = open_memstream(&names, &bytes);
    for (size_t j = i; j < list->count && list_out != NULL; j++) {
      const check *other = &list->data[j];
      if (other->outcome != CHECK_SKIP || !check_is_reported(other)) continue;
      if (strcmp(other->reason != NULL ? other->reason : "", reason) != 0) continue;
      done[j] = true;
      fprintf(list_out, "%s%s", j > i ? ", " : "", other->name);
    }
    if (list_out != NULL) fclose(list_out);
    ROW(p, reason, c->needs != NULL ? c->needs : "-", names != NULL ? names : c->name);
    free(names);
  }
  free(done);
}

static void write_figures(page *p, const check_list *list) {
  bool any = false;
  for (size_t i = 0; i < list->count; i++) {
    const check *c = &list->data[i];
    if (c->notes == NULL || c->outcome == CHECK_WAITING || !check_is_reported(c)) continue;
    if (!any) heading(p, 2, "Figures");
    any = true;
    item(p, c->name, c->notes);
  }
  if (list->n_abilities == 0) return;
  heading(p, 2, "Optional abilities");
  ROW(p, "device", "ability", "works");
  for (size_t i = 0; i < list->n_abilities; i++) {
    char index[16];
    snprintf(index, sizeof index, "%u", (unsigned)list->abilities[i].index);
    ROW(p, index, list->abilities[i].name, list->abilities[i].works ? "yes" : "no");
  }
}

static const char style[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Conformance of a Heddle plugin</title>\n"
    "<style>body{font:15px/1.45 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{border:1px solid #bbb;padding:.2em .6em;text-align:left;vertical-align:top}"
    "</style></head><body>\n";

void check_write_page(FILE *out, bool html, const check_options *o, const check_list *list, const check_counts *n) {
  page p = {.out = out, .html = html};
  char text[256];
  if (html) fputs(style, out);
  snprintf(text, sizeof text, "Conformance of the Heddle plugin %.100s", list->plugin[0] != '\0' ? list->plugin : "");
  heading(&p, 1, text);
  snprintf(text, sizeof text,
           "%s: %zu passed, %zu failed, %zu failed as a consequence, %zu failed as expected, %zu skipped.",
           check_has_passed(list, n) ? "Passed" : "Not passed", n->passed, n->failed + n->unexpected, n->consequences,
           n->expected, n->skipped);
  paragraph(&p, text);
  write_subject(&p, o, list);
  write_devices(&p, o, list);
  write_groups(&p, list);
  write_failures(&p, list);
  write_skips(&p, list);
  write_figures(&p, list);
  leave(&p);
  if (html) fputs("</body></html>\n", out);
}
