/* conformance/main.c: heddle-check, the program that "heddle check-plugin" starts: the parent of the cases' processes,
 * or one of those. docs/conformance.md describes its use. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

static void print_cases(void) {
  for (size_t g = 0; g < n_check_groups; g++)
    for (uint32_t i = 0; i < check_groups[g]->count; i++) {
      const kit_case *c = &check_groups[g]->cases[i];
      kit_print(stdout, "%-28s %s%s\n", c->name, c->promise, c->words != NULL ? " (one case a word)" : "");
    }
}

static int run(const check_options *o) {
  check_list list = {0};
  FILE *out = stdout;
  if (o->output != NULL && (out = fopen(o->output, "w")) == NULL) {
    kit_print(stderr, "heddle check-plugin: %s: %s\n", o->output, strerror(errno));
    return CHECK_FAILED;
  }
  int status = check_run(o, &list, out);
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
