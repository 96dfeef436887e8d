/* The descriptions of settings and the chain of extensions: see contract.h. */
#include "contract.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if HEDDLE_ABI_MINOR >= 2 /* tests/abi builds this with the header of 1.0 too */

enum { MOST_SETTINGS = 1000, MOST_EXTENSIONS = 64, MOST_KEY = 63 };

static bool broken(char *why, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (vsnprintf(why, CONTRACT_TEXT, format, args) < 0) why[0] = '\0';
  va_end(args);
  return false;
}

bool contract_host_setting(const char *key) {
  static const char names[][12] = {"regions", "watchdog_ms", "layers"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strcmp(names[i], key) == 0) return true;
  return false;
}

static bool is_key(const char *key) {
  if (key == NULL || key[0] < 'a' || key[0] > 'z') return false;
  const size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.");
  return key[n] == '\0' && n <= MOST_KEY;
}

static bool is_among(const char *word, const char *all) {
  const size_t bytes = strlen(word);
  for (const char *p = all; *p != '\0';) {
    const size_t n = strcspn(p, ",");
    if (n == bytes && strncmp(p, word, n) == 0) return true;
    p += n + (p[n] == ',');
  }
  return false;
}

static bool is_number(const char *text, uint64_t low, uint64_t high) {
  uint64_t n = 0;
  for (const char *p = text; *p != '\0'; p++) {
    const unsigned digit = (unsigned)(*p - '0');
    if (digit > 9 || n > (UINT64_MAX - digit) / 10) return false;
    n = n * 10 + digit;
  }
  return n >= low && n <= high;
}

bool contract_setting_takes(const heddle_psetting *s, const char *value) {
  switch (s->type) {
  case HEDDLE_SETTING_SWITCH: return is_among(value, "0,1,on,off,yes,no,true,false");
  case HEDDLE_SETTING_NUMBER: return value[0] != '\0' && is_number(value, s->low, s->high);
  case HEDDLE_SETTING_WORD: return is_among(value, s->values);
  default: return true;
  }
}

bool contract_setting(const heddle_psetting *s, uint64_t i, char *why) {
  if (!is_key(s->key))
    return broken(why, "the key of its setting %llu is no word of at most %d lower-case letters, digits, '_' and '.'",
                  (unsigned long long)i, (int)MOST_KEY);
  if (s->default_value == NULL || s->help == NULL || s->help[0] == '\0')
    return broken(why, "its setting '%s' has no %s", s->key, s->default_value == NULL ? "default_value" : "help");
  const char *fault = contract_text_fault(s->help, 4096);
  if (fault != NULL) return broken(why, "the help of its setting '%s' %s", s->key, fault);
  if (s->type < HEDDLE_SETTING_SWITCH) return broken(why, "its setting '%s' has type %u", s->key, (unsigned)s->type);
  if (s->type == HEDDLE_SETTING_WORD && (s->values == NULL || s->values[0] == '\0'))
    return broken(why, "its setting '%s' is of type WORD and has no values", s->key);
  if (s->type == HEDDLE_SETTING_NUMBER && s->low > s->high)
    return broken(why, "its setting '%s' is a number from %llu to %llu", s->key, (unsigned long long)s->low,
                  (unsigned long long)s->high);
  if (s->default_value[0] != '\0' && !contract_setting_takes(s, s->default_value))
    return broken(why, "its setting '%s' has the default '%.40s', which is none of its values", s->key,
                  s->default_value);
  if (contract_host_setting(s->key)) return broken(why, "its setting '%s' has the name of one of the host's", s->key);
  return true;
}

static bool has_twice(const heddle_parray *all, uint64_t i, const char *key) {
  for (uint64_t j = 0; j < i; j++) {
    heddle_psetting other;
    if (contract_copy(&other, sizeof other, (const char *)all->data + j * all->stride, sizeof other.struct_size) &&
        other.key != NULL && strcmp(other.key, key) == 0)
      return true;
  }
  return false;
}

bool contract_setting_at(const heddle_parray *all, uint64_t i, heddle_psetting *out, char *why) {
  if (all->count > MOST_SETTINGS || (all->count > 0 && (all->data == NULL || all->stride < sizeof(uint32_t))))
    return broken(why, "its list of settings makes no sense (%llu of %llu bytes each)", (unsigned long long)all->count,
                  (unsigned long long)all->stride);
  if (i >= all->count) return true;
  if (!contract_copy(out, sizeof *out, (const char *)all->data + i * all->stride, sizeof out->struct_size) ||
      out->struct_size > all->stride)
    return broken(why, "struct_size of its setting %llu is wrong", (unsigned long long)i);
  if (!contract_setting(out, i, why)) return false;
  return !has_twice(all, i, out->key) || broken(why, "its setting '%s' is described twice", out->key);
}

bool contract_extensions(const heddle_pextension *x, char *why) {
  for (int n = 0; x != NULL; x = x->next, n++) {
    if (n == MOST_EXTENSIONS)
      return broken(why, "its chain of extensions has more than %d members", (int)MOST_EXTENSIONS);
    if (x->struct_size < sizeof *x || x->name == NULL || x->name[0] == '\0')
      return broken(why, "extension %d of its chain has %s", n,
                    x->struct_size < sizeof *x ? "a wrong struct_size" : "no name");
  }
  return true;
}

#endif
