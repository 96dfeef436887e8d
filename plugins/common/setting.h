/* The words that switch a setting on and off, and how a plugin describes its settings: the same for every plugin. */
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

/* Members of a static const array of heddle_psetting, and the root table's member settings of such an array. */
#define P_SETTING(kind, name, fallback, ...) \
  { \
    .struct_size = sizeof(heddle_psetting), .type = HEDDLE_SETTING_##kind, .key = (name), .default_value = (fallback), \
    __VA_ARGS__ \
  }
#define P_SETTING_SWITCH(name, fallback, text) P_SETTING(SWITCH, name, fallback, .help = (text))
#define P_SETTING_NUMBER(name, fallback, least, most, text) \
  P_SETTING(NUMBER, name, fallback, .low = (least), .high = (most), .help = (text))
#define P_SETTING_WORD(name, fallback, all, text) P_SETTING(WORD, name, fallback, .values = (all), .help = (text))
#define P_SETTING_TEXT(name, fallback, text) P_SETTING(TEXT, name, fallback, .help = (text))
#define P_SETTING_PATH(name, fallback, text) P_SETTING(PATH, name, fallback, .help = (text))
#define P_SETTINGS(array) \
  { (array), sizeof(array) / sizeof(array)[0], sizeof(array)[0] }

/* Is it a word that switches off? */
static inline bool p_is_off(const char *text) {
  bool on = true;
  return p_switch(text, &on) && !on;
}

#endif
