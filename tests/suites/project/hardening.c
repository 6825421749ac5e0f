/* The server and the library are built hardened: their ELF files tell. */
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZER = 1 };
#else
enum { SANITIZER = 0 };
#endif

struct elf {
    const char *path;
    char *bytes;
    const Elf64_Ehdr *header;
    const Elf64_Phdr *segments;
    const Elf64_Shdr *sections;
};

static struct elf load(const char *path)
{
    size_t size;
    struct elf elf = {.path = path, .bytes = read_file(path, &size)};
    elf.header = (const void *)elf.bytes;
    cr_assert(size > sizeof *elf.header && memcmp(elf.bytes, ELFMAG, SELFMAG) == 0, "%s", path);
    elf.segments = (const void *)(elf.bytes + elf.header->e_phoff);
    elf.sections = (const void *)(elf.bytes + elf.header->e_shoff);
    return elf;
}

static const Elf64_Phdr *segment(const struct elf *elf, unsigned type)
{
    for (unsigned i = 0; i < elf->header->e_phnum; i++)
        if (elf->segments[i].p_type == type)
            return &elf->segments[i];
    return NULL;
}

static const Elf64_Shdr *section(const struct elf *elf, unsigned type)
{
    for (unsigned i = 0; i < elf->header->e_shnum; i++)
        if (elf->sections[i].sh_type == type)
            return &elf->sections[i];
    return NULL;
}

/* Value of an entry of the dynamic section; `absent` if there is none. */
static unsigned long dynamic(const struct elf *elf, long tag, unsigned long absent)
{
    const Elf64_Shdr *s = section(elf, SHT_DYNAMIC);
    cr_assert(s, "%s has no dynamic section", elf->path);
    for (const Elf64_Dyn *d = (const void *)(elf->bytes + s->sh_offset); d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag)
            return d->d_un.d_val;
    return absent;
}

/* Calls `take` with each symbol of a table until it is true; gives that symbol or NULL. */
static const Elf64_Sym *find_symbol(const struct elf *elf, unsigned table,
                                    bool (*take)(const Elf64_Sym *symbol, const char *name))
{
    const Elf64_Shdr *s = section(elf, table);
    cr_assert(s, "%s has no symbols", elf->path);
    const char *names = elf->bytes + elf->sections[s->sh_link].sh_offset;
    const Elf64_Sym *symbols = (const void *)(elf->bytes + s->sh_offset);
    for (size_t i = 1; i < s->sh_size / sizeof *symbols; i++)
        if (take(&symbols[i], names + symbols[i].st_name))
            return &symbols[i];
    return NULL;
}

static bool is_canary(const Elf64_Sym *symbol, const char *name)
{
    return symbol->st_shndx == SHN_UNDEF && strcmp(name, "__stack_chk_fail") == 0;
}

static bool is_checked_copy(const Elf64_Sym *symbol, const char *name)
{
    size_t length = strlen(name);
    return symbol->st_shndx == SHN_UNDEF && length > 4 && strcmp(name + length - 4, "_chk") == 0;
}

static void check_segments(const struct elf *elf)
{
    const Elf64_Phdr *stack = segment(elf, PT_GNU_STACK);
    cr_expect_eq(elf->header->e_type, ET_DYN, "%s is loaded at a fixed address", elf->path);
    cr_expect(stack && !(stack->p_flags & PF_X), "%s: the stack can be run", elf->path);
    cr_expect(segment(elf, PT_GNU_RELRO), "%s: no RELRO", elf->path);
    for (unsigned i = 0; i < elf->header->e_phnum; i++) {
        const Elf64_Phdr *s = &elf->segments[i];
        cr_expect(s->p_type != PT_LOAD || !(s->p_flags & PF_X) || !(s->p_flags & PF_W),
                  "%s: code can be written", elf->path);
        cr_expect(s->p_type != PT_LOAD || !(s->p_flags & PF_X) || s->p_offset > 0,
                  "%s: code lies with headers", elf->path);
    }
}

static void check_dynamic(const struct elf *elf)
{
    cr_expect(dynamic(elf, DT_FLAGS, 0) & DF_BIND_NOW, "%s: symbols are bound late", elf->path);
    cr_expect(!(dynamic(elf, DT_FLAGS, 0) & DF_TEXTREL) && !dynamic(elf, DT_TEXTREL, 0),
              "%s: code is relocated", elf->path);
    cr_expect(dynamic(elf, DT_RPATH, ~0ul) == ~0ul && dynamic(elf, DT_RUNPATH, ~0ul) == ~0ul,
              "%s looks for libraries in folders of its own", elf->path);
}

/* A sanitizer checks copies by itself, in the place of FORTIFY. */
static void check_calls(const struct elf *elf)
{
    cr_expect(find_symbol(elf, SHT_DYNSYM, is_canary), "%s: no stack protector", elf->path);
    if (SANITIZER)
        puts("(not looked at: FORTIFY, in a build with a sanitizer)");
    else
        cr_expect(find_symbol(elf, SHT_DYNSYM, is_checked_copy), "%s: no FORTIFY", elf->path);
}

#if defined(__x86_64__) && defined(__CET__)
static bool is_entry(const Elf64_Sym *symbol, const char *name)
{
    return symbol->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
           (strcmp(name, "main") == 0 || strcmp(name, "kl_simd_name") == 0);
}

/* Place in the file of an address. */
static const char *bytes_at(const struct elf *elf, unsigned long address)
{
    for (unsigned i = 0; i < elf->header->e_phnum; i++) {
        const Elf64_Phdr *s = &elf->segments[i];
        if (s->p_type == PT_LOAD && address - s->p_vaddr < s->p_filesz)
            return elf->bytes + s->p_offset + (address - s->p_vaddr);
    }
    cr_assert_fail("no such address");
    return NULL;
}

/* CET: functions begin with endbr64. The file's own mark for it is only there if the startup files of
 * libc have it, too, which those of Debian 12 have not. */
static void check_branch_targets(const struct elf *elf)
{
    const Elf64_Sym *entry = find_symbol(elf, SHT_SYMTAB, is_entry);
    cr_assert(entry, "%s has no symbols", elf->path);
    cr_expect_arr_eq(bytes_at(elf, entry->st_value), "\xf3\x0f\x1e\xfa", 4, "%s: no CET",
                     elf->path);
}
#else
static void check_branch_targets(const struct elf *elf)
{
    printf("(not looked at: CET of %s, on this machine)\n", elf->path);
}
#endif

static void check(const char *path)
{
    struct elf elf = load(path);
    check_segments(&elf);
    check_dynamic(&elf);
    check_calls(&elf);
    check_branch_targets(&elf);
    free(elf.bytes);
}

Test(hardening, the_server_is_built_hardened)
{
    struct elf elf = load(KLDIV_BINARY);
    cr_expect(segment(&elf, PT_INTERP), "not a program");
    free(elf.bytes);
    check(KLDIV_BINARY);
}

Test(hardening, the_library_is_built_hardened)
{
    static const char name[] = "libkldiv.so";
    char path[100];
    snprintf(path, sizeof path, "%.*s%s", (int)(strlen(KLDIV_BINARY) - strlen("kldivd")),
             KLDIV_BINARY, name);
    if (access(path, R_OK) != 0)
        cr_skip("%s is not built", path);
    check(path);
}
