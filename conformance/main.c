/* conformance/main.c: heddle-check, the program that "heddle check-plugin" starts: the parent of the cases' processes,
 * or one of those. docs/conformance.md describes its use. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

static void print_cases(void) {
  for (size_t g = 0; g < n_check_groups; g++)
    for (uint32_t i = 0; i < check_groups[g]->count; i++) {
      const kit_case *c = &check_groups[g]->cases[i];
      kit_print(stdout, "%-28s %s%s\n", c->name, c->promise, c->words != NULL ? " (one case a word)" : "");
    }
}

static int cannot_write(const char *path) {
  kit_print(stderr, "heddle check-plugin: %s: %s\n", path, strerror(errno));
  return CHECK_FAILED;
}

static bool ends_in(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcmp(text + n - m, end) == 0;
}

/* Reports in files of their own, beside the one that was printed. */
static int write_files(const check_options *o, const check_list *list, const check_counts *counts, FILE *junit,
                       FILE *page) {
  int status = CHECK_DONE;
  if (junit != NULL) check_report_junit.end(junit, o, list, counts);
  if (junit != NULL && fclose(junit) != 0) status = cannot_write(o->junit);
  const bool html = page != NULL && (ends_in(o->report, ".html") || ends_in(o->report, ".htm"));
  if (page != NULL) check_write_page(page, html, o, list, counts);
  if (page != NULL && fclose(page) != 0) status = cannot_write(o->report);
  return status;
}

static int run(const check_options *o) {
  check_list list = {0};
  check_counts counts = {0};
  FILE *out = stdout, *junit = NULL, *page = NULL;
  if (o->junit != NULL && (junit = fopen(o->junit, "w")) == NULL) return cannot_write(o->junit);
  if (o->report != NULL && (page = fopen(o->report, "w")) == NULL) {
    int status = cannot_write(o->report);
    if (junit != NULL) fclose(junit);
    return status;
  }
  if (o->output != NULL && (out = fopen(o->output, "w")) == NULL) {
    int status = cannot_write(o->output);
    if (junit != NULL) fclose(junit);
    if (page != NULL) fclose(page);
    return status;
  }
  struct stat info;
  if (stat(o->library, &info) == 0) list.file_bytes = (uint64_t)info.st_size;
  int status = check_run(o, &list, out, &counts);
  int files = write_files(o, &list, &counts, junit, page);
  if (status == CHECK_DONE) status = files;
  if (status != CHECK_WRONG_WORDS && !o->no_store) {
    int stored = check_store(o, &list);
    if (status == CHECK_DONE) status = stored;
  }
  bool written = fflush(out) == 0 && !ferror(out);
  if (out != stdout && fclose(out) != 0) written = false;
  if (!written) {
    kit_print(stderr, "heddle check-plugin: cannot write the report: %s\n", strerror(errno));
    status = CHECK_FAILED;
  }
  check_list_finish(&list);
  return status;
}

int main(int argc, char **argv) {
  check_options o;
  int status = check_read_words(argc, argv, &o);
  if (status == CHECK_DONE && o.list) {
    print_cases();
    status = fflush(stdout) == 0 ? CHECK_DONE : CHECK_FAILED;
  } else if (status == CHECK_DONE && o.run != NULL) {
    status = check_child(&o);
  } else if (status == CHECK_DONE) {
    status = check_find_library(&o);
    if (status == CHECK_DONE) status = run(&o);
  }
  check_words_finish(&o);
  return status;
}
