/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line. Error messages name the option, the value and the allowed values. */
#include "bench_common.h"
#include "bench_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)1 << 30) /* an MPI count is an int */

static char complaint[256];

static const char* complain(char option, const char* value, const char* allowed) {
    snprintf(complaint, sizeof complaint, "option -%c: value '%s' not allowed: %s", option, value, allowed);
    return complaint;
}

/* "64", "4K", "1M"; advances *text past it. */
static bool parse_bytes(const char** text, size_t* bytes) {
    if (**text < '0' || **text > '9') {
        return false;
    }
    char* end;
    errno = 0;
    const unsigned long long number = strtoull(*text, &end, 10);
    const char *suffixes = "KMG", *suffix = *end ? strchr(suffixes, *end) : NULL;
    const int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    *text = end + (suffix != NULL);
    *bytes = (size_t)number << shift;
    return errno == 0 && number <= MAX_BYTES >> shift;
}

static bool parse_range(const char* text, struct bench_options* o) {
    size_t low, high;
    if (!parse_bytes(&text, &low)) {
        return false;
    }
    high = low;
    if (*text == ':') {
        ++text;
        if (!parse_bytes(&text, &high)) {
            return false;
        }
    }
    o->min_bytes = low;
    o->max_bytes = high;
    return *text == '\0' && low >= 1 && low <= high;
}

static bool parse_long(const char* text, long long low, long long high, long long* number) {
    char* end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *number >= low && *number <= high;
}

static const char* parse_level(const char* value, struct bench_options* o) {
    static const struct {
        const char* name;
        int level;
    } levels[] = {{"single", MPI_THREAD_SINGLE},
                  {"funneled", MPI_THREAD_FUNNELED},
                  {"serialized", MPI_THREAD_SERIALIZED},
                  {"multiple", MPI_THREAD_MULTIPLE}};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; ++i) {
        if (strcmp(value, levels[i].name) == 0) {
            o->level = levels[i].level;
            return NULL;
        }
    }
    return complain('L', value, "use single, funneled, serialized or multiple");
}

static const char* parse_one(int option, const char* value, const struct bench_spec* spec, struct bench_options* o) {
    long long number;
    char* end;
    switch (option) {
    case 'm':
        if (!parse_range(value, o)) {
            return complain('m', value, "use SIZE or MIN:MAX, from 1 to 1G, e.g. 1:64M");
        }
        if (spec->element_bytes && o->min_bytes % spec->element_bytes != 0) {
            char allowed[80];
            snprintf(allowed, sizeof allowed, "sizes must be multiples of an element of %zu bytes",
                     spec->element_bytes);
            return complain('m', value, allowed);
        }
        return NULL;
    case 'i':
        if (!parse_long(value, 1, 1000000000, &number)) {
            return complain('i', value, "use 1 to 1000000000 iterations per batch");
        }
        o->iterations = (long)number;
        return NULL;
    case 'x':
        if (!parse_long(value, 0, 1000000000, &number)) {
            return complain('x', value, "use 0 to 1000000000 warm-up iterations");
        }
        o->warmup = (long)number;
        return NULL;
    case 'w':
        if (!spec->windowed) {
            return complain('w', value, "this benchmark has no window of messages");
        }
        if (!parse_long(value, 1, kMaxWindow, &number)) {
            return complain('w', value, "use a window of 1 to 4096 messages");
        }
        o->window = (int)number;
        return NULL;
    case 'b':
        if (!parse_long(value, 1, kMaxBatches, &number)) {
            return complain('b', value, "use 1 to 1001 batches");
        }
        o->batches = (int)number;
        return NULL;
    case 'T':
        o->target_s = strtod(value, &end);
        if (end == value || *end || !(o->target_s >= 0.0001 && o->target_s <= 3600)) {
            return complain('T', value, "use 0.0001 to 3600 seconds per size");
        }
        return NULL;
    case 'F':
        if (!parse_long(value, 0, (long long)MAX_BYTES, &number)) {
            return complain('F', value, "use the offset of a byte, 0 to 1073741824");
        }
        o->fault_at = number;
        return NULL;
    case 'L': return parse_level(value, o);
    case 'd': o->verify = true; return NULL;
    case 's': o->spread = true; return NULL;
    case 'h': o->help = true; return NULL;
    default: return "";
    }
}

enum { kMaxExtra = 9, kExtraBase = 1000 };

static int extras_of(const struct bench_spec* spec) {
    int count = 0;
    while (spec->extra && spec->extra[count].name) {
        ++count;
    }
    return count + (spec->ranks == kTwoRanks);
}

/* Its own options come first, then the one of all benchmarks of two ranks. */
static const struct bench_extra* extra_of(const struct bench_spec* spec, int number) {
    return spec->ranks == kTwoRanks && number == extras_of(spec) - 1 ? &bench_near_option : &spec->extra[number];
}

static const char* complain_extra(const struct bench_extra* extra, const char* value, const char* allowed) {
    snprintf(complaint, sizeof complaint, "option --%s: value '%s' not allowed: use %s", extra->name, value, allowed);
    return complaint;
}

static const char* parse_word(const struct bench_extra* extra, const char* value) {
    char allowed[128] = "";
    for (int i = 0; extra->words[i]; ++i) {
        if (strcmp(extra->words[i], value) == 0) {
            *extra->target = i;
            return NULL;
        }
        const size_t used = strlen(allowed);
        snprintf(allowed + used, sizeof allowed - used, "%s%s", i ? " or " : "", extra->words[i]);
    }
    return complain_extra(extra, value, allowed);
}

static const char* parse_extra(const struct bench_extra* extra, const char* value) {
    if (!extra->value) {
        *extra->target = 1;
        return NULL;
    }
    if (extra->words) {
        return parse_word(extra, value);
    }
    char *end, allowed[64];
    const double number = strtod(value, &end);
    if (end == value || *end || !(number >= extra->low && number <= extra->high) ||
        (extra->whole && number != (double)(long long)number)) {
        snprintf(allowed, sizeof allowed, "a %snumber from %.10g to %.10g", extra->whole ? "whole " : "", extra->low,
                 extra->high);
        return complain_extra(extra, value, allowed);
    }
    *extra->target = number;
    return NULL;
}

/* The message for an unknown option, or for one whose value is missing or unexpected. */
static const char* complain_unknown(int option, int count, const struct bench_spec* spec, const char* word) {
    char name[64];
    if (optopt >= kExtraBase && optopt < kExtraBase + count) {
        snprintf(name, sizeof name, "--%s", extra_of(spec, optopt - kExtraBase)->name);
        const bool takes = extra_of(spec, optopt - kExtraBase)->value != NULL;
        snprintf(complaint, sizeof complaint, "option %s %s; -h lists them", name,
                 takes ? "needs a value" : "takes no value");
        return complaint;
    }
    if (optopt) {
        snprintf(name, sizeof name, "-%c", optopt);
    } else {
        snprintf(name, sizeof name, "%s", word);
    }
    snprintf(complaint, sizeof complaint, "option %s %s; -h lists them", name,
             option == ':' ? "needs a value" : "is unknown");
    return complaint;
}

static int default_window(const struct bench_spec* spec) {
    return !spec->windowed ? 1 : spec->default_window ? spec->default_window : 64;
}

const char* bench_parse(int argc, char** argv, const struct bench_spec* spec, struct bench_options* o) {
    struct option longs[kMaxExtra + 1] = {{0}};
    const int extras = extras_of(spec);
    for (int i = 0; i < extras; ++i) {
        const struct bench_extra* extra = extra_of(spec, i);
        longs[i] = (struct option){extra->name, extra->value ? required_argument : no_argument, NULL, kExtraBase + i};
    }
    *o = (struct bench_options){.min_bytes = spec->default_min_bytes ? spec->default_min_bytes : 1,
                                .max_bytes = spec->default_max_bytes,
                                .warmup = -1,
                                .window = default_window(spec),
                                .batches = 101,
                                .target_s = 0.1,
                                .level = MPI_THREAD_SINGLE,
                                .fault_at = -1};
    opterr = 0;
    int option;
    while ((option = getopt_long(argc, argv, ":m:i:x:w:b:T:F:L:dsh", longs, NULL)) != -1) {
        if (option == '?' || option == ':') {
            return complain_unknown(option, extras, spec, argv[optind - 1]);
        }
        const char* wrong = option >= kExtraBase ? parse_extra(extra_of(spec, option - kExtraBase), optarg)
                                                 : parse_one(option, optarg, spec, o);
        if (wrong) {
            return wrong;
        }
    }
    if (optind < argc) {
        snprintf(complaint, sizeof complaint, "argument '%s' is not an option; -h lists them", argv[optind]);
        return complaint;
    }
    if (o->fault_at >= 0 && !o->verify) {
        return "option -F damages data for -d to find: give -d too";
    }
    return NULL;
}

void bench_print_help(const struct bench_spec* spec) {
    printf(
        "%s: %s\n\n"
        "  -m MIN:MAX  message sizes, doubling from MIN; K, M, G are powers of 1024 (default %zu:%zu)\n"
        "  -T SECONDS  measuring time per size (default 0.1); decides the iterations unless -i does\n"
        "  -i N        iterations per batch\n"
        "  -b N        batches per size; the median of them is printed (default 101, fewer if one takes long)\n"
        "  -x N        warm-up iterations per size (default 10, above 64 KiB 2)\n",
        spec->name, spec->summary, spec->default_min_bytes ? spec->default_min_bytes : 1, spec->default_max_bytes);
    if (spec->windowed) {
        printf("  -w N        messages in flight (default %d; not more than 128 MiB of them, but at least 2)\n",
               default_window(spec));
    }
    printf(
        "  -L LEVEL    thread level that MPI is asked for: single (default), funneled, serialized or multiple\n"
        "  -s          print the best and the worst batch too, as the last two columns\n"
        "  -d          check every byte received; the figures then say nothing about speed\n"
        "  -F OFFSET   with -d: damage this byte on arrival, to see the check fail\n"
        "  -h          this text\n");
    for (int i = 0; i < extras_of(spec); ++i) {
        const struct bench_extra* extra = extra_of(spec, i);
        char option[64];
        snprintf(option, sizeof option, "--%s%s%s", extra->name, extra->value ? " " : "",
                 extra->value ? extra->value : "");
        printf("  %-22s %s\n", option, extra->help);
    }
}
