#include "plan/words.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Words, ThreeSignificantDigits) {
  EXPECT_EQ(significant(4.0312), "4.03");
  EXPECT_EQ(significant(46.84), "46.8");
  EXPECT_EQ(significant(1943.7), "1,940");
  EXPECT_EQ(significant(0.04567), "0.0457");
  EXPECT_EQ(significant(9.999), "10.0");
  EXPECT_EQ(significant(99.96), "100");
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(-1234567), "-1,230,000");
  EXPECT_EQ(significant(3.84, 2), "3.8");
}

TEST(Words, UnitsChangeBeforeTheyOverflow) {
  EXPECT_EQ(seconds(4.03), "4.03 s");
  EXPECT_EQ(seconds(0.31), "310 ms");
  EXPECT_EQ(seconds(0.9999), "1.00 s");
  EXPECT_EQ(duration(22.2 * 86400), "22.2 days");
  EXPECT_EQ(duration(3 * 365 * 86400.0), "3.00 years");
  EXPECT_EQ(dollars(1.36e6), "$1.36 M");
  EXPECT_EQ(dollars(2.49), "$2.49");
  EXPECT_EQ(signed_dollars(-1.31e6), "-$1.31 M");
  EXPECT_EQ(signed_dollars(119e3), "+$119 k");
  EXPECT_EQ(energy(871e3), "871 MWh");
  EXPECT_EQ(scaled(135e9), "135 B");
  EXPECT_EQ(count(1234567), "1,234,567");
  EXPECT_EQ(count(-1234), "-1,234");
  EXPECT_EQ(points(-0.00001), "+0.0");
}

TEST(Words, RangesShareTheUnitOfTheirValue) {
  EXPECT_EQ(seconds_range({4.03, 3.8, 4.4}), "(3.8-4.4)");
  EXPECT_EQ(percent_range({0.468, 0.43, 0.49}), "(43-49)");
  EXPECT_EQ(dollars_range({1.36e6, 0.99e6, 1.5e6}), "(0.99-1.5)");
}

TEST(Words, WhyTheLoserLost) {
  Prediction winner, loser;
  winner.step = Seconds(4), loser.step = Seconds(5);
  winner.ledger[Account::kUseful] = loser.ledger[Account::kUseful] = Seconds(2);
  winner.ledger[Account::kBubble] = Seconds(1), loser.ledger[Account::kBubble] = Seconds(2.5);
  winner.ledger[Account::kCommTensor] = Seconds(1),
  loser.ledger[Account::kCommTensor] = Seconds(0.5);
  EXPECT_EQ(why_slower(winner, loser), "1.50 s more waiting: bubble; 500 ms less comm: tensor");
}

// What a step's ledger can hold has words for a sentence: none is `kernels: optimizer`.
TEST(Words, AccountsOfAStepHavePhrases) {
  for (int i = 1; i < static_cast<int>(Account::kCheckpoint); ++i) {
    const Account a = static_cast<Account>(i);
    EXPECT_EQ(account_phrase(a).find(':'), std::string::npos) << account_phrase(a);
  }
}

}  // namespace
}  // namespace assay
