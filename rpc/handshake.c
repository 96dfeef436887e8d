/* rpc/handshake.c: the first bytes of a client: a magic number and a key with options. */
#include <stdlib.h>
#include <string.h>

#include "rpc/server.h"

/* Digits and one point, without regard to the locale; 0: none, or not a time. */
static double seconds_of(const char *text) {
  double value = 0, unit = 1;
  bool has_point = false;
  for (; *text != '\0'; text++) {
    if (*text == '.' && !has_point) has_point = true;
    else if (*text < '0' || *text > '9' || value > 1e9) return 0;
    else if (has_point) value += (*text - '0') * (unit /= 10);
    else value = value * 10 + (*text - '0');
  }
  return value;
}

heddle_status rpc_hello(const uint8_t *data, size_t bytes, char *key, size_t *used) {
  static const uint8_t magic[] = {0x71, 0xf2, 0x0f, 0x00};
  byte_reader r = {data, bytes, false};
  key[0] = '\0';
  if (memcmp(data, magic, bytes < sizeof magic ? bytes : sizeof magic) != 0) return HEDDLE_EFORMAT;
  (void)byte_take_u32(&r);
  uint32_t n = byte_take_u32(&r);
  if (r.bad) return HEDDLE_EBUSY;
  if (n > RPC_LONGEST_KEY) return HEDDLE_EFORMAT;
  const uint8_t *text = byte_take(&r, n);
  if (text == NULL) return HEDDLE_EBUSY;
  if (n > 0 && memchr(text, 0, n) != NULL) return HEDDLE_EFORMAT;
  if (n > 0) memcpy(key, text, n);
  key[n] = '\0';
  *used = bytes - r.left;
  return HEDDLE_OK;
}

heddle_status rpc_handshake(const uint8_t *data, size_t bytes, char *match, double *seconds, size_t *used) {
  static const char client[] = "client:", timeout[] = "-timeout=";
  char key[RPC_LONGEST_KEY + 1];
  *seconds = 0;
  const heddle_status s = rpc_hello(data, bytes, key, used);
  if (s != HEDDLE_OK) return s;
  if (strncmp(key, client, sizeof client - 1) != 0) return HEDDLE_EFORMAT;
  char *rest = NULL, *word = key + sizeof client - 1;
  size_t length = strcspn(word, " \t\r\n");
  memcpy(match, word, length);
  match[length] = '\0';
  for (word = strtok_r(word + length, " \t\r\n", &rest); word != NULL; word = strtok_r(NULL, " \t\r\n", &rest))
    if (strncmp(word, timeout, sizeof timeout - 1) == 0) *seconds = seconds_of(word + sizeof timeout - 1);
  return HEDDLE_OK;
}
