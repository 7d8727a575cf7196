// Reading what people write in free text: words without case or punctuation, whether a thing is
// said or denied, and numbers in front of a unit. Inputs are untrusted; nothing here can fail.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// Lower-case runs of letters and digits, one space between them and one at each end, so that a
// phrase can be found as whole words: `ZeRO-3 + CPU` becomes ` zero 3 cpu `. Other bytes separate
// words.
std::string plain_words(std::string_view text);

// Whether the phrase (already plain, without spaces at its ends) stands in the words.
bool says(const std::string& words, std::string_view phrase);
bool says_any(const std::string& words, const std::vector<std::string_view>& phrases);

// Like `says`, but `no x`, `did not use x`, `x off`, `x=false` count as denied; of several places
// one that affirms decides. Nothing: not mentioned.
std::optional<bool> claims(const std::string& words, std::string_view phrase);
// Whether any of the phrases stands there without being denied.
bool affirms(const std::string& words, std::initializer_list<std::string_view> phrases);
// Whether the `length` letters behind the blank at `space` are denied.
bool denied_at(const std::string& words, size_t space, size_t length);
// As plain_words, with ` | ` at both ends and where a clause ends (`;`, a new line, `,` or `.`
// before a blank, an aside in brackets or behind a stroke that denies something of its own):
// neither a phrase nor a denial reaches beyond it.
std::string clause_words(std::string_view text);
// The clauses of such words, each as plain_words has it.
std::vector<std::string> clauses_of(const std::string& words);

// Of several phrases: denied where any of those mentioned is.
std::optional<bool> claims_any(const std::string& words,
                               std::initializer_list<std::string_view> phrases);

// A cell that says that nothing is said (`N/A`, `not stated`), and one that says `without`.
bool unstated(const std::string& words);
bool without(const std::string& words);

// The number that follows (`cpu offload layers 20`) or precedes (`500 w power cap`) a phrase.
std::optional<double> number_after(const std::string& words, std::string_view phrase);
std::optional<double> number_before(const std::string& words, std::string_view phrase);
// A whole number of at least one and at most `most` behind the first phrase that has one.
std::optional<int64_t> count_after(const std::string& words,
                                   std::initializer_list<std::string_view> phrases, double most);

// A whole cell as a number: blanks around it, thousands commas and a trailing word or parenthesis
// are allowed (`1,024`, `80 GB`, `8 (per node)`). Nothing for text, NaN and infinities.
std::optional<double> cell_number(std::string_view cell);

std::string_view trimmed_cell(std::string_view text);

// Parts between separators, trimmed, empty ones left out.
std::vector<std::string> split_any(std::string_view text, std::string_view separators);

// Letters and digits only, lower case: the form in which names are compared.
std::string squeezed(std::string_view text);

}  // namespace assay
