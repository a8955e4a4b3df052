"""What was measured: data, methods, one runner, and a study for each question.

python -m experiments.run list           the studies
python -m experiments.run STUDY          run what is missing, write tables and figures

data.py          every data set: rows, sensors, splits
methods.py       name to estimator; alternatives.py has those that are not ours
study.py         what a study is: cells, how one is measured, tables, figures
studies/         one file each
run.py           the runner; results.py reads and appends lines, provenance.py says
                 with what they were measured; renew.py measures again what is older
                 than the answers of the default
tables.py, figures.py    how tables and figures are drawn; paper.toml: published numbers
"""
