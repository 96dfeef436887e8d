/* conformance/list.c: the checks that are to be run: the groups' cases, with a check for each word and each device, and
 * what the lists of unsupported cases and of expected failures say of them. */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/check.h"
#include "conformance/kit_side.h"

/* A pattern is for a check's name, its case's own name, or its group's. */
static bool matches(const char *pattern, const check *c) {
  return fnmatch(pattern, c->name, 0) == 0 || fnmatch(pattern, c->what->name, 0) == 0 ||
         strcmp(pattern, c->group->name) == 0;
}

static bool add(const check_options *o, check_list *list, const kit_group *g, const kit_case *what, const char *word,
                uint32_t index, bool first) {
  check *grown = realloc(list->data, (list->count + 1) * sizeof *grown);
  if (grown == NULL) return false;
  list->data = grown;
  check *c = &grown[list->count++];
  *c = (check){.group = g, .what = what, .index = index};
  char device[16] = "";
  if (!first) snprintf(device, sizeof device, "@%u", (unsigned)index);
  snprintf(c->word, sizeof c->word, "%s", word);
  snprintf(c->name, sizeof c->name, "%s%s%s%s", what->name, word[0] != '\0' ? ":" : "", word, device);
  c->wanted = o->only.count == 0;
  for (size_t i = 0; i < o->only.count && !c->wanted; i++) c->wanted = matches(o->only.data[i], c);
  if (o->quick && (what->flags & KIT_LONG) != 0) c->wanted = false;
  return true;
}

static bool add_words(const check_options *o, check_list *list, const kit_group *g, const kit_case *what,
                      uint32_t index, bool first) {
  size_t n = strlen(what->name);
  if (what->words == NULL) return add(o, list, g, what, "", index, first);
  bool ok = true;
  for (size_t i = 0; i < list->n_worded && ok; i++)
    if (strncmp(list->worded[i], what->name, n) == 0 && list->worded[i][n] == ' ')
      ok = add(o, list, g, what, list->worded[i] + n + 1, index, first);
  return ok;
}

/* With "--device all": the first device of each driver string. */
static bool same_driver_before(const check_list *list, uint32_t index) {
  for (uint32_t i = 0; i < index; i++)
    if (strcmp(list->drivers[i], list->drivers[index]) == 0) return true;
  return false;
}

bool check_list_make(const check_options *o, check_list *list) {
  bool all = o->device == UINT32_MAX;
  uint32_t first = all ? 0 : o->device, end = all && list->n_devices > 0 ? list->n_devices : first + 1;
  for (size_t g = 0; g < n_check_groups; g++)
    for (uint32_t device = first; device < end; device++)
      for (uint32_t i = 0; i < check_groups[g]->count; i++) {
        const kit_case *what = &check_groups[g]->cases[i];
        if (device > first && (what->stage < KIT_STAGE_INSTANCE || same_driver_before(list, device))) continue;
        if (!add_words(o, list, check_groups[g], what, device, device == first)) return false;
      }
  return true;
}

void check_list_finish(check_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    free(list->data[i].reason);
    free(list->data[i].refuses);
    free(list->data[i].notes);
    free(list->data[i].output);
    free(list->data[i].excuse);
    free(list->data[i].behind);
  }
  free(list->data);
  free(list->drivers);
  free(list->about);
  free(list->worded);
  free(list->abilities);
}

bool check_keep_ability(check_list *list, uint32_t index, const char *text) {
  check_ability a = {.index = index};
  int works;
  if (sscanf(text, "%23s %d", a.name, &works) != 2) return false;
  a.works = works != 0;
  for (size_t i = 0; i < list->n_abilities; i++)
    if (list->abilities[i].index == index && strcmp(list->abilities[i].name, a.name) == 0) {
      list->abilities[i].works = list->abilities[i].works && a.works; /* every case must have seen it work */
      return true;
    }
  check_ability *grown = realloc(list->abilities, (list->n_abilities + 1) * sizeof *grown);
  if (grown == NULL) return false;
  list->abilities = grown;
  list->abilities[list->n_abilities++] = a;
  return true;
}

const char *check_list_unmatched(const check_options *o, const check_list *list) {
  for (size_t i = 0; i < o->only.count; i++) {
    bool found = false;
    for (size_t c = 0; c < list->count && !found; c++) found = matches(o->only.data[i], &list->data[c]);
    if (!found) return o->only.data[i];
  }
  return NULL;
}

/* ---- lists of excuses */

/* One line: a pattern of cases, blanks, and a reason. */
static int excuse(check_list *list, const char *file, int number, char *line, bool expected) {
  line[strcspn(line, "\r\n")] = '\0';
  char *name = line + strspn(line, " \t");
  if (name[0] == '\0' || name[0] == '#') return CHECK_DONE;
  size_t n = strcspn(name, " \t");
  char *reason = name + n;
  reason += strspn(reason, " \t");
  name[n] = '\0';
  if (reason[0] == '\0') {
    kit_print(stderr, "heddle check-plugin: %s:%d: '%s' has no reason after it\n", file, number, name);
    return CHECK_WRONG_WORDS;
  }
  bool found = false;
  for (size_t i = 0; i < list->count; i++) {
    check *c = &list->data[i];
    if (!matches(name, c)) continue;
    found = true;
    free(c->excuse);
    c->excuse = strdup(reason);
    c->expected = expected;
    if (c->excuse == NULL) return CHECK_FAILED;
  }
  if (found || list->n_devices == 0) return CHECK_DONE; /* without a device the words are missing: it may be for one */
  kit_print(stderr, "heddle check-plugin: %s:%d: there is no case '%s'; --list shows those there are\n", file, number,
            name);
  return CHECK_WRONG_WORDS;
}

static int read_list(check_list *list, const char *file, bool expected) {
  if (file == NULL) return CHECK_DONE;
  FILE *in = fopen(file, "r");
  if (in == NULL) {
    kit_print(stderr, "heddle check-plugin: %s: %s\n", file, strerror(errno));
    return CHECK_WRONG_WORDS;
  }
  char line[1024];
  int status = CHECK_DONE;
  for (int number = 1; status == CHECK_DONE && fgets(line, sizeof line, in) != NULL; number++)
    status = excuse(list, file, number, line, expected);
  if (status == CHECK_DONE && ferror(in)) {
    kit_print(stderr, "heddle check-plugin: %s: %s\n", file, strerror(errno));
    status = CHECK_FAILED;
  }
  fclose(in);
  return status;
}

int check_list_excuse(const check_options *o, check_list *list) {
  int status = read_list(list, o->expected, true);
  return status == CHECK_DONE ? read_list(list, o->unsupported, false) : status;
}
