"""Expectations: sentences about a site that its files have to keep true (docs/expectations.md).

document = read_document(path)              the file expectations.toml
judge = Judge(source, agent)                the files of the site
judge.check(document.sentences[0].meaning)  does the sentence hold, and by which line?
written_today(source, agent)                the sentences that hold today"""
