/* A program in C that uses the C library alone. */
#include "runtime/capi/commsir.h"

#include <stdio.h>

int main(void) {
  char *result = NULL;
  if (commsir_compile("{\"source\": \"comms.kernel @a() { comms.return }\","
                      " \"ranks\": 2, \"produce\": \"check\"}",
                      &result) != COMMSIR_OK) {
    fprintf(stderr, "%s\n", commsir_error_message());
    return 1;
  }
  puts(result);
  commsir_free(result);
  return 0;
}
