/* The words that switch a setting on and off: the same for every plugin. */
#ifndef HEDDLE_PLUGINS_COMMON_SETTING_H
#define HEDDLE_PLUGINS_COMMON_SETTING_H

#include <stdbool.h>
#include <string.h>

/* Is text such a word? *out is then true for 1, on, yes and true, false for 0, off, no and false. Any thread. */
static inline bool p_switch(const char *text, bool *out) {
  static const char words[2][4][6] = {{"0", "off", "no", "false"}, {"1", "on", "yes", "true"}};
  for (int i = 0; i < 8; i++) {
    if (strcmp(text, words[i / 4][i % 4]) != 0) continue;
    *out = i / 4 != 0;
    return true;
  }
  return false;
}

/* Is it a word that switches off? */
static inline bool p_is_off(const char *text) {
  bool on = true;
  return p_switch(text, &on) && !on;
}

#endif
