#include "api/api.h"

/* Embeds the document; the Makefile lists it as a prerequisite of this object. */
__asm__(".pushsection .rodata\n"
        ".global api_openapi\n"
        ".type api_openapi, %object\n"
        "api_openapi: .incbin \"api/openapi.json\"\n"
        ".byte 0\n"
        ".size api_openapi, . - api_openapi\n"
        ".popsection\n");
