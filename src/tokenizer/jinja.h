/* The parts of the Jinja interpreter behind chat_template.h: a lexer, a parser to a tree, and a walk over it. Only for
 * files in this folder.
 *
 * All memory of a template is in its arena, all of a rendering in that of the rendering.
 */
#ifndef CT_TOKENIZER_JINJA_H
#define CT_TOKENIZER_JINJA_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "tokenizer/tokenizer.h"

/* ---- Values ---- */

typedef enum ct__jkind {
    CT__J_UNDEFINED, /* string: the name that has no value */
    CT__J_NONE,
    CT__J_BOOL,
    CT__J_INT,
    CT__J_FLOAT,
    CT__J_STRING,
    CT__J_LIST,
    CT__J_TUPLE, /* a list that prints in parentheses */
    CT__J_DICT,
    CT__J_NAMESPACE,
    CT__J_FUNCTION, /* string: its name */
    CT__J_METHOD,   /* string: its name; of self */
    CT__J_MACRO,
} ct__jkind;

typedef struct ct__jvalue ct__jvalue;
typedef struct ct__jnode ct__jnode;
typedef struct ct__jframe ct__jframe;

typedef struct ct__jlist {
    ct__jvalue *items;
    size_t count, capacity;
    int nesting; /* of lists and dicts inside, which printing and comparing walk down */
} ct__jlist;

typedef struct ct__jdict {
    struct ct__jpair *pairs; /* in order of insertion */
    size_t count, capacity;
    int nesting;
} ct__jdict;

typedef struct ct__jmacro {
    const ct__jnode *node;
    ct__jframe *frame; /* where it was defined */
} ct__jmacro;

struct ct__jvalue {
    ct__jkind kind;
    union {
        bool boolean;
        int64_t integer;
        double real;
        struct {
            const char *data; /* not NUL-terminated */
            size_t length;
        } string;
        ct__jlist *list;
        ct__jdict *dict;
        const ct__jmacro *macro;
    };
    const ct__jvalue *self; /* of a method */
};

typedef struct ct__jpair {
    ct__jvalue key, value;
} ct__jpair;

#define CT__JNONE ((ct__jvalue){.kind = CT__J_NONE})
ct__jvalue ct__jbool(bool value);
ct__jvalue ct__jint(int64_t value);
ct__jvalue ct__jstring(const char *data, size_t length); /* borrowed */
ct__jvalue ct__jtext(const char *text);
ct__jvalue ct__jundefined(const char *name, size_t length);
ct__jvalue ct__jlist_new(ct_arena *arena);
ct__jvalue ct__jdict_new(ct_arena *arena);
void ct__jlist_add(ct_arena *arena, ct__jlist *list, ct__jvalue item);
void ct__jdict_set(ct_arena *arena, ct__jdict *dict, ct__jvalue key, ct__jvalue value);
const ct__jvalue *ct__jdict_find(const ct__jdict *dict, ct__jvalue key); /* NULL when absent */
const ct__jvalue *ct__jdict_find_text(const ct__jdict *dict, const char *key, size_t length);

int ct__jnesting(ct__jvalue value);

bool ct__jis_true(ct__jvalue value);
bool ct__jis_list(ct__jvalue value); /* or a tuple */
bool ct__jis_number(ct__jvalue value);
double ct__jas_double(ct__jvalue value);
bool ct__jequal(ct__jvalue a, ct__jvalue b);
bool ct__jis_text(ct__jvalue value, const char *text);
const char *ct__jkind_name(ct__jvalue value); /* as Python calls the type */
size_t ct__jlength_utf8(ct__jvalue string);   /* characters */
/* Characters [begin, end) of a string, which must be within it. */
ct__jvalue ct__jslice_utf8(ct__jvalue string, size_t begin, size_t end);

/* str(), repr() and json.dumps() of Python. */
void ct__jprint(ct__jvalue value, ct_str *str);
void ct__jrepr(ct__jvalue value, ct_str *str);
typedef struct ct__jjson_opts {
    int64_t indent; /* -1: one line */
    bool ensure_ascii, sort_keys;
    ct__jvalue item_separator, key_separator; /* undefined: Python's */
} ct__jjson_opts;
/* False when a value has no JSON form; *out_bad is then that value. */
bool ct__jjson(ct__jvalue value, const ct__jjson_opts *opts, ct_str *str, ct__jvalue *out_bad);

/* ---- The tree ---- */

typedef enum ct__jnode_kind {
    /* statements */
    CT__JN_TEXT,   /* text */
    CT__JN_OUTPUT, /* a */
    CT__JN_IF,     /* a: condition, body, otherwise */
    CT__JN_FOR,    /* items: targets, a: what is walked over, b: filter or NULL, body, otherwise */
    CT__JN_SET,    /* items: targets (a name, or an attribute of one), a: value or NULL with body */
    CT__JN_MACRO,  /* text: name, items: parameters (NAME, b: default or NULL), body */
    CT__JN_BREAK,
    CT__JN_CONTINUE,
    CT__JN_GENERATION, /* body */
    /* expressions */
    CT__JN_CONST, /* value */
    CT__JN_NAME,  /* text */
    CT__JN_LIST,
    CT__JN_TUPLE,     /* items */
    CT__JN_DICT,      /* items: key, value, key, value, ... */
    CT__JN_ATTRIBUTE, /* a.text */
    CT__JN_ITEM,      /* a[b] */
    CT__JN_SLICE,     /* a[items[0] : items[1] : items[2]], each may be NULL */
    CT__JN_CALL,      /* a(items); an item that is KEYWORD is text=a */
    CT__JN_KEYWORD,
    CT__JN_FILTER, /* a|text(items) */
    CT__JN_TEST,   /* a is text(items) */
    CT__JN_NOT,
    CT__JN_NEGATE,
    CT__JN_POSITIVE, /* a */
    CT__JN_AND,
    CT__JN_OR,
    CT__JN_BINARY,    /* a text b: + - * / // % ** ~ */
    CT__JN_COMPARE,   /* a, then items: pairs of an operator (TEXT node) and an operand */
    CT__JN_CONDITION, /* a if b else items[0], which may be NULL */
} ct__jnode_kind;

typedef struct ct__jnodes {
    ct__jnode **items;
    size_t count, capacity;
} ct__jnodes;

struct ct__jnode {
    ct__jnode_kind kind;
    int line;
    const char *text;
    size_t length;
    ct__jvalue value;
    ct__jnode *a, *b;
    ct__jnodes items, body, otherwise;
};

/* ---- Lexer ---- */

typedef enum ct__jtoken_kind {
    CT__JT_END,
    CT__JT_TEXT,
    CT__JT_BLOCK_BEGIN,
    CT__JT_BLOCK_END,
    CT__JT_OUTPUT_BEGIN,
    CT__JT_OUTPUT_END,
    CT__JT_NAME,
    CT__JT_STRING, /* text without quotes and escapes */
    CT__JT_INT,
    CT__JT_FLOAT,
    CT__JT_OPERATOR,
} ct__jtoken_kind;

typedef struct ct__jtoken {
    ct__jtoken_kind kind;
    int line;
    const char *text;
    size_t length;
} ct__jtoken;

typedef struct ct__jtokens {
    ct__jtoken *items;
    size_t count, capacity;
} ct__jtokens;

/* Tokens of source, ended by END; memory is the arena's. */
CT_MUST_USE ct_status *ct__jinja_lex(ct_arena *arena, const char *source, size_t length, const char *name,
                                     ct__jtokens *out_tokens);
CT_MUST_USE ct_status *ct__jinja_parse(ct_arena *arena, const ct__jtokens *tokens, const char *name,
                                       ct__jnodes *out_nodes);

/* ---- Rendering ---- */

/* A scope: variables, and the scope around it. */
struct ct__jframe {
    ct__jframe *outer;
    ct__jdict variables;
};

typedef struct ct__jrender {
    ct_arena *arena;
    const char *name;
    int64_t now_seconds;
    ct_str *out;
    size_t out_begin; /* of the rendering in out */
    int depth;        /* of nested evaluations */
    int64_t steps;
    ct_token_range *generated;
    size_t num_generated;
    enum { CT__JFLOW_ON, CT__JFLOW_BREAK, CT__JFLOW_CONTINUE } flow;
} ct__jrender;

/* "name:line: ..." */
#define ct__jerror(render, line, code, ...)                                                                            \
    ct__jinja_error((render)->name, (line), (code), __FILE__, __LINE__, __VA_ARGS__)
CT_MUST_USE ct_status *ct__jinja_error(const char *name, int line, ct_code code, const char *file, int file_line,
                                       const char *format, ...) CT_PRINTF(6, 7);

/* Arguments of a filter, a test, a function or a method. */
typedef struct ct__jarguments {
    ct__jvalue *values;
    size_t count;
    ct__jpair *keywords; /* keys are strings */
    size_t num_keywords;
} ct__jarguments;
/* The argument at index or of that name; undefined when it was not given. */
ct__jvalue ct__jargument(const ct__jarguments *arguments, size_t index, const char *name);

CT_MUST_USE ct_status *ct__jinja_run(ct__jrender *render, const ct__jnodes *nodes, ct__jframe *frame);
CT_MUST_USE ct_status *ct__jinja_filter(ct__jrender *render, int line, const char *name, size_t length,
                                        ct__jvalue input, const ct__jarguments *arguments, ct__jvalue *out);
CT_MUST_USE ct_status *ct__jinja_test(ct__jrender *render, int line, const char *name, size_t length, ct__jvalue input,
                                      const ct__jarguments *arguments, bool *out);
CT_MUST_USE ct_status *ct__jinja_method(ct__jrender *render, int line, const ct__jvalue *self, const char *name,
                                        size_t length, const ct__jarguments *arguments, ct__jvalue *out);
CT_MUST_USE ct_status *ct__jinja_function(ct__jrender *render, int line, const char *name, size_t length,
                                          const ct__jarguments *arguments, ct__jvalue *out);
bool ct__jinja_has_method(ct__jvalue value, const char *name, size_t length);
bool ct__jinja_has_function(const char *name, size_t length);

/* a.name as `.` and as [] find it: undefined when there is none. */
ct__jvalue ct__jinja_attribute(ct__jrender *render, ct__jvalue value, const char *name, size_t length);
/* The items of what can be walked over: lists, the characters of a string, the keys of a dict; undefined has none. */
CT_MUST_USE ct_status *ct__jinja_items(ct__jrender *render, int line, ct__jvalue value, ct__jlist **out_items);
/* == != < <= > >= in, not in */
CT_MUST_USE ct_status *ct__jinja_compare(ct__jrender *render, int line, const char *operator, size_t length,
                                         ct__jvalue a, ct__jvalue b, bool *out);
/* Memory that a rendering may ask for at once; an error beyond it. */
CT_MUST_USE ct_status *ct__jinja_check_size(ct__jrender *render, int line, int64_t size);

#endif
